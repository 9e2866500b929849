/** Collects titled schemas under `components/schemas`, so that each stands in the document once. */
import { definitionsByName } from '../../packages/shared/src/contract/schema.js';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

const prefix = '#/components/schemas/';

export class Components {
  readonly #byName = new Map<string, Json>();

  /** The schema as it stands in place: a reference where it has a title, else itself with its inner schemas referenced. */
  inline(schema: object): Json {
    return this.#place(JSON.parse(JSON.stringify(schema)) as Json);
  }

  /** All schemas collected so far, by name in alphabetical order. */
  schemas(): JsonObject {
    return Object.fromEntries([...this.#byName].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #place(value: Json): Json {
    if (Array.isArray(value)) return value.map((each) => this.#place(each));
    if (typeof value !== 'object' || value === null) return value;
    if (typeof value.$ref === 'string') return this.#placeDefinition(value.$ref);
    // A property may itself be called `title`; only a schema's title is a string.
    return typeof value.title === 'string' ? this.#hoist(value.title, value) : this.#children(value);
  }

  #placeDefinition(ref: string): Json {
    const name = ref.replace('#/$defs/', '');
    const schema = definitionsByName()[name];
    if (schema === undefined) throw new Error(`no definition of ${name}`);
    return this.#byName.has(name)
      ? { $ref: prefix + name }
      : this.#hoist(name, { ...this.#plain(schema), title: name });
  }

  #hoist(name: string, value: JsonObject): Json {
    const known = this.#byName.get(name);
    // A placeholder first: a schema that refers to itself meets its own name on the way down.
    if (known === undefined) this.#byName.set(name, {});
    if (known !== undefined && Object.keys(known as JsonObject).length === 0) return { $ref: prefix + name };
    const placed = this.#children(value);
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(placed)) {
      throw new Error(`two different schemas are called ${name}`);
    }
    this.#byName.set(name, placed);
    return { $ref: prefix + name };
  }

  #children(value: JsonObject): Json {
    const entries = Object.entries(value).filter(([key]) => key !== '$defs');
    const placed: JsonObject = Object.fromEntries(entries.map(([key, inner]) => [key, this.#place(inner)]));
    return placed.discriminator === undefined ? placed : { ...placed, discriminator: mapped(value, placed) };
  }

  #plain(schema: object): JsonObject {
    return JSON.parse(JSON.stringify(schema)) as JsonObject;
  }
}

/** OpenAPI's discriminator maps each constant to its schema, since the schemas' names differ from the constants. */
function mapped(value: JsonObject, placed: JsonObject): Json {
  const tag = (value.discriminator as { propertyName: string }).propertyName;
  const names = (placed.oneOf as { $ref: string }[]).map((member) => member.$ref);
  const constants = (value.oneOf as JsonObject[]).map((member) => constantOf(member, tag));
  return { propertyName: tag, mapping: Object.fromEntries(constants.map((each, index) => [each, names[index] ?? ''])) };
}

function constantOf(member: JsonObject, tag: string): string {
  const target = typeof member.$ref === 'string' ? definitionsByName()[member.$ref.replace('#/$defs/', '')] : member;
  const { properties } = target as unknown as { properties: Record<string, { const: string }> };
  return properties[tag]?.const ?? '';
}
