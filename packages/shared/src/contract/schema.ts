/**
 * The few building blocks that all schemas of the contract share. A schema is plain JSON Schema (2020-12), so ajv validates
 * it and OpenAPI 3.1 prints it without a converter. A `title` names a schema: the generated documents hoist it under that name.
 */
import Type, { type Static, type TProperties, type TSchema } from 'typebox';

/** Schemas that refer to themselves, by name; `compile` and the OpenAPI generator put them under `$defs`. */
const definitions = new Map<string, TSchema>();

/** All self-referring schemas defined so far, by name. */
export function definitionsByName(): Readonly<Record<string, TSchema>> {
  return Object.fromEntries(definitions);
}

/** A reference to the schema that `define` stores under the same name. `T` is its static type, which cannot be inferred. */
export function refer<T>(name: string) {
  return Type.Unsafe<T>({ $ref: `#/$defs/${name}` });
}

/** Stores a schema that refers to itself (through `refer`) and answers with a reference to it. */
export function define<T>(name: string, schema: TSchema) {
  definitions.set(name, schema);
  return refer<T>(name);
}

/** An object of a request: properties that are not listed are refused. */
export function closed<P extends TProperties>(title: string, properties: P, description?: string) {
  return Type.Object(properties, {
    title,
    additionalProperties: false,
    ...(description === undefined ? {} : { description }),
  });
}

/** An object of a response or event. It may gain properties later, so clients ignore those that they don't know. */
export function open<P extends TProperties>(title: string, properties: P, description?: string) {
  return Type.Object(properties, { title, ...(description === undefined ? {} : { description }) });
}

/**
 * A union whose members differ in one constant property. Written as `oneOf` with a `discriminator`, so that ajv checks the one
 * member that is meant and reports its errors alone.
 */
export function tagged<M extends TSchema[]>(tag: string, members: readonly [...M], title?: string) {
  return Type.Unsafe<Static<M[number]>>({
    ...(title === undefined ? {} : { title }),
    type: 'object',
    discriminator: { propertyName: tag },
    oneOf: members,
  });
}

export const Id = Type.String({ format: 'uuid', description: 'A UUID.' });
export const Timestamp = Type.String({ format: 'date-time', description: 'RFC 3339, UTC.' });
/** A name that a person gives to something: 1 to 200 characters. */
export const Name = Type.String({ minLength: 1, maxLength: 200, pattern: '\\S', description: 'Not blank.' });

/** `T` or null. */
export function nullable<S extends TSchema>(schema: S) {
  return Type.Union([schema, Type.Null()]);
}
