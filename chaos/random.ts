/**
 * Random numbers that a seed replays. Each part of a run draws from a generator of its own (`fork`), so that what one
 * part draws never depends on how fast another was.
 */
export class Random {
  readonly #seed: string;
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: string) {
    this.#seed = seed;
    const word = hash(seed);
    this.#a = word();
    this.#b = word();
    this.#c = word();
    for (let i = 0; i < 12; i += 1) this.#next();
  }

  /** A generator for the part of this name: the same name gives the same numbers. */
  fork(name: string): Random {
    return new Random(`${this.#seed}/${name}`);
  }

  /** A whole number from 0 to `count - 1`. */
  int(count: number): number {
    return Math.floor(this.#fraction() * count);
  }

  /** A whole number from `min` to `max`. */
  between(min: number, max: number): number {
    return min + this.int(max - min + 1);
  }

  chance(probability: number): boolean {
    return this.#fraction() < probability;
  }

  pick<T>(list: readonly T[]): T {
    const picked = list[this.int(list.length)];
    if (picked === undefined) throw new RangeError('nothing to pick from');
    return picked;
  }

  /** One of the keys, each as likely as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries(weights) as [K, number][];
    let left = this.#fraction() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      left -= weight;
      if (left < 0) return key;
    }
    return this.pick(entries)[0];
  }

  #fraction(): number {
    return this.#next() / 2 ** 32;
  }

  /** sfc32, by Chris Doty-Humphrey: small, fast, and passes PractRand. */
  #next(): number {
    const mixed = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + mixed;
    return mixed >>> 0;
  }
}

/** FNV-1a over the text, then stepped on for each further word. */
function hash(text: string): () => number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  return () => {
    state = Math.imul(state ^ (state >>> 15), 0x85ebca6b);
    state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
    state ^= state >>> 16;
    return state | 0;
  };
}
