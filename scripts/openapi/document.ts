/** Builds the OpenAPI 3.1 document from the table of routes and their schemas. */
import { Problem, type ProblemCode, statusOf } from '../../packages/shared/src/contract/problems.js';
import { problemsOf, type Route, type RouteResponse } from '../../packages/shared/src/contract/route.js';
import { routes } from '../../packages/shared/src/contract/routes.js';
import { Components, type Json } from './components.js';

/** The document as a JSON value; the same input gives the same bytes. */
export function openApiDocument(): Json {
  const components = new Components();
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route, components) };
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Turnkeep',
      version: '1',
      description: 'A self-hosted server for agent chats whose turns survive everything.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }, { cookie: [] }],
    tags: [...new Set(routes.map((route) => route.group))].map((name) => ({ name })),
    paths,
    components: {
      schemas: components.schemas(),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        cookie: {
          type: 'apiKey',
          in: 'cookie',
          name: 'turnkeep_session',
          description: 'Set by POST /auth/session. A request that changes something must come from the same origin.',
        },
      },
    },
  };
}

function operation(route: Route, components: Components): Json {
  return {
    operationId: operationId(route),
    tags: [route.group],
    summary: route.summary,
    description: needs(route),
    ...(route.auth === 'none' ? { security: [] } : {}),
    parameters: [...pathParameters(route), ...otherParameters(route, components)],
    ...requestBody(route, components),
    responses: { ...successes(route, components), ...failures(route, components) },
  };
}

/** What a caller needs, in a sentence. */
export function needs({ auth, owner }: Route): string {
  const own = owner === true ? ', and the session must be your own' : '';
  switch (auth) {
    case 'none':
      return 'Needs no sign-in.';
    case 'any':
      return 'Needs a signed-in user or the instance admin.';
    case 'user':
      return 'Needs a signed-in user.';
    case 'admin':
      return 'Needs the instance admin.';
    default:
      return `Needs the scope \`${auth}\` in the project${own}.`;
  }
}

/** `GET /projects/:projectId/members` is `getProjectsMembers`; a path that ends in a parameter names it. */
function operationId({ method, path }: Route): string {
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== 'v2');
  const words = segments.filter((segment) => !segment.startsWith(':')).flatMap((segment) => segment.split('-'));
  const last = segments.at(-1) ?? '';
  const by = last.startsWith(':') ? ['by', last.slice(1)] : [];
  return [method.toLowerCase(), ...[...words, ...by].map((word) => word.charAt(0).toUpperCase() + word.slice(1))].join(
    '',
  );
}

function pathParameters({ path }: Route): Json[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    in: 'path',
    name,
    required: true,
    // A tool call's id is Turnkeep's own, but no promise is made of its form.
    schema: name === 'toolCallId' ? { type: 'string' } : { type: 'string', format: 'uuid' },
  }));
}

function otherParameters({ parameters = [] }: Route, components: Components): Json[] {
  return parameters.map(({ schema, ...parameter }) => ({ ...parameter, schema: components.inline(schema) }));
}

function requestBody({ request, upload }: Route, components: Components): Record<string, Json> {
  if (upload === true)
    return { requestBody: { required: true, content: { 'multipart/form-data': { schema: oneFile } } } };
  if (request === undefined) return {};
  return { requestBody: { required: true, content: { 'application/json': { schema: components.inline(request) } } } };
}

const oneFile: Json = {
  type: 'object',
  required: ['file'],
  properties: { file: { type: 'string', contentMediaType: 'application/octet-stream' } },
};

function successes({ responses }: Route, components: Components): Record<string, Json> {
  return Object.fromEntries(
    responses.map(({ status, response }) => [
      String(status),
      { description: response.description, content: content(response, components) },
    ]),
  );
}

function content({ schema, contentType = 'application/json' }: RouteResponse, components: Components): Json {
  return { [contentType]: schema === undefined ? {} : { schema: components.inline(schema) } };
}

function failures(route: Route, components: Components): Record<string, Json> {
  const codes = problemsOf(route);
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) byStatus.set(statusOf[code], [...(byStatus.get(statusOf[code]) ?? []), code]);
  return Object.fromEntries([...byStatus].map(([status, list]) => [String(status), failure(status, list, components)]));
}

function failure(status: number, codes: ProblemCode[], components: Components): Json {
  return {
    description: codes.map((code) => `\`${code}\``).join(', '),
    ...(status === 503 ? { headers: { 'Retry-After': { description: 'Seconds.', schema: { type: 'integer' } } } } : {}),
    content: { 'application/problem+json': { schema: components.inline(Problem) } },
  };
}
