/** Schemas as Markdown: a name for each type, a table for each object. */

export type Schema = {
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  format?: string;
  description?: string;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  pattern?: string;
};

/** A schema's type in a few words; named schemas are links to their section. */
export function typeName(schema: Schema): string {
  if (schema.$ref !== undefined) return link(schema.$ref);
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const).replaceAll('"', "'")}\``;
  if (schema.enum !== undefined) return schema.enum.map((each) => `\`${String(each)}\``).join(', ');
  const branches = schema.anyOf ?? schema.oneOf;
  if (branches !== undefined) return branches.map(typeName).join(' or ');
  if (schema.items !== undefined) return `list of ${typeName(schema.items)}`;
  if (schema.properties !== undefined) return `\`{${fieldNames(schema).join(', ')}}\``;
  if (schema.format === 'uuid') return 'UUID';
  if (schema.format === 'date-time') return 'time';
  return schema.type ?? 'any JSON';
}

/** A named schema under its own heading. */
export function typeSection(name: string, schema: Schema): string {
  const lines = [`### ${name}`];
  if (schema.description !== undefined) lines.push(schema.description);
  lines.push(schema.properties === undefined ? `${typeName(schema)}.` : fieldTable(schema));
  return lines.join('\n\n');
}

/** One row for each event of a union: its type, its fields, and when it comes. */
export function eventTable(schemas: Readonly<Record<string, Schema>>, union: string): string {
  const members = (schemas[union]?.oneOf ?? []).map((member) => schemas[nameOf(member.$ref ?? '')] ?? {});
  const rows = members.map((event) => {
    const { type, ...fields } = event.properties ?? {};
    const list = Object.entries(fields).map(([name, field]) => `\`${optional(event, name)}\` ${typeName(field)}`);
    return `| \`${String(type?.const)}\` | ${cell(list.join('<br>'))} | ${cell(event.description ?? '')} |`;
  });
  return ['| event | fields | when |', '| --- | --- | --- |', ...rows].join('\n');
}

function fieldTable(schema: Schema): string {
  const rows = Object.entries(schema.properties ?? {}).map(
    ([name, field]) => `| \`${optional(schema, name)}\` | ${cell(typeName(field))} | ${cell(notes(field))} |`,
  );
  return ['| field | type | notes |', '| --- | --- | --- |', ...rows].join('\n');
}

function notes(field: Schema): string {
  const facts = [
    ...(field.description === undefined || field.description === 'A UUID.' ? [] : [field.description]),
    ...bounds(field),
    ...(field.default === undefined ? [] : [`Default: \`${JSON.stringify(field.default)}\`.`]),
  ];
  return facts.join(' ');
}

function bounds({ minimum, maximum, minLength, maxLength, maxItems, pattern }: Schema): string[] {
  return [
    ...(minimum !== undefined && maximum !== undefined ? [`${minimum} to ${maximum}.`] : []),
    ...(maxLength !== undefined ? [`${minLength ?? 0} to ${maxLength} characters.`] : []),
    ...(maxItems !== undefined ? [`At most ${maxItems}.`] : []),
    ...(pattern !== undefined ? [`Matches \`${pattern}\`.`] : []),
  ];
}

function fieldNames(schema: Schema): string[] {
  return Object.keys(schema.properties ?? {}).map((name) => optional(schema, name));
}

function optional(schema: Schema, name: string): string {
  return schema.required?.includes(name) === true ? name : `${name}?`;
}

function link(ref: string): string {
  const name = nameOf(ref);
  // Events have rows in a table, not sections of their own.
  if (name === 'Notification') return `[${name}](#notification-events)`;
  if (name === 'ProblemCode') return `[${name}](#problems)`;
  return `[${name}](#${name.endsWith('Event') ? 'events' : name.toLowerCase()})`;
}

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1);
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
