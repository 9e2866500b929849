/** Writes the readable reference, docs/http-api.md, from the same table of routes and the OpenAPI document. */
import { problemCodes, statusOf, titleOf } from '../../packages/shared/src/contract/problems.js';
import { problemsOf, type Route } from '../../packages/shared/src/contract/route.js';
import { routes } from '../../packages/shared/src/contract/routes.js';
import { Components } from './components.js';
import { needs, openApiDocument } from './document.js';
import { introduction, streams } from './prose.js';
import { eventTable, type Schema, typeName, typeSection } from './tables.js';

/** The whole page. */
export function reference(): string {
  const document = openApiDocument() as unknown as { components: { schemas: Record<string, Schema> } };
  const schemas = document.components.schemas;
  const groups = [...new Set(routes.map((route) => route.group))];
  const parts = [
    introduction,
    '## Contents',
    [...groups, 'Events', 'Notification events', 'Problems', 'Types']
      .map((name) => `- [${name}](#${anchor(name)})`)
      .join('\n'),
    ...groups.flatMap((group) => [`## ${group}`, ...routes.filter((route) => route.group === group).map(routeSection)]),
    '## Events',
    streams,
    eventTable(schemas, 'ChatEvent'),
    '## Notification events',
    'What `GET /push` carries.',
    eventTable(schemas, 'Notification'),
    '## Problems',
    problemTable(),
    '## Types',
    'A field with `?` may be absent. Responses and events may gain fields; requests with unknown fields are refused.',
    ...Object.entries(schemas)
      .filter(([name]) => !name.endsWith('Event') && !inTables.has(name))
      .map(([name, schema]) => typeSection(name, schema)),
  ];
  return `${parts.join('\n\n')}\n`;
}

/** What stands in a table of its own and needs no section. */
const inTables = new Set([
  'Notification',
  'Connected',
  'AgentExecutionUpdated',
  'AgentMessageQueueUpdated',
  'ProblemCode',
]);

function routeSection(route: Route): string {
  const lines = [`### ${route.method} ${route.path}`, `${route.summary} ${needs(route)}`];
  const facts = [...parameterLines(route), ...bodyLines(route), ...responseLines(route)];
  const codes = problemsOf(route).map((code) => `\`${code}\``);
  if (codes.length > 0) facts.push(`- Problems: ${codes.join(', ')}`);
  return [...lines, facts.join('\n')].join('\n\n');
}

function parameterLines({ parameters = [] }: Route): string[] {
  return parameters.map(({ in: place, name, schema, description }) => {
    return `- ${place === 'query' ? 'Query' : 'Header'} \`${name}\`: ${typeName(placed(schema))}, optional. ${description}`;
  });
}

function bodyLines({ request, upload }: Route): string[] {
  if (upload === true) return ['- Body: `multipart/form-data` with one file'];
  return request === undefined ? [] : [`- Body: ${typeName(placed(request))}`];
}

function responseLines({ responses }: Route): string[] {
  return responses.map(({ status, response }) => {
    const kind = response.contentType === undefined ? '' : ` \`${response.contentType}\``;
    const type = response.schema === undefined ? '' : ` ${typeName(placed(response.schema))}`;
    return `- ${status}${kind}${type}: ${response.description}`;
  });
}

function placed(schema: Parameters<Components['inline']>[0]): Schema {
  return new Components().inline(schema) as unknown as Schema;
}

function problemTable(): string {
  const rows = problemCodes.map((code) => `| \`${code}\` | ${statusOf[code]} | ${titleOf[code]} |`);
  return ['| code | status | title |', '| --- | --- | --- |', ...rows].join('\n');
}

function anchor(heading: string): string {
  return heading.toLowerCase().replaceAll(' ', '-');
}
