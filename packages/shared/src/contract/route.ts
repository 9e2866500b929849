/** How a route of the HTTP interface is described; `routes.ts` is the table of them. */
import type { TSchema } from 'typebox';
import type { Scope } from './access.js';
import type { ProblemCode } from './problems.js';

/**
 * Who may call a route (section 2). `none`: no sign-in. `user`: any user. `any`: a user or the instance admin. `admin`: the
 * instance admin, by `ADMIN_TOKEN`. A scope: a member of the project whose role has it.
 */
export type RouteAuth = 'none' | 'user' | 'any' | 'admin' | Scope;

export type RouteResponse = {
  description: string;
  /** The body's schema; for an event stream, that of one event. Absent: no JSON. */
  schema?: TSchema;
  contentType?: string;
};

export type RouteParameter = { in: 'query' | 'header'; name: string; schema: TSchema; description: string };

export type Route = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  group: string;
  auth: RouteAuth;
  /** True where the session (or attachment) must be the caller's own; another's is 404, like one that is not there. */
  owner?: boolean;
  summary: string;
  /** The section of the contract that the route comes from. */
  section: number;
  parameters?: RouteParameter[];
  request?: TSchema;
  /** True for a multipart/form-data upload of one file. */
  upload?: boolean;
  /** By HTTP status; several of one status differ in their content type. */
  responses: { status: number; response: RouteResponse }[];
  /** The codes that only this route has; `problemsOf` adds those that follow from its shape. */
  problems?: ProblemCode[];
};

/** Every problem code that a route may answer with, in the order of the checks of section 2. */
export function problemsOf(route: Route): ProblemCode[] {
  const { auth, method, path, request, upload, parameters = [], problems = [] } = route;
  if (route.group === operations) return problems;
  const inProject = auth.includes(':');
  const changes = method !== 'GET';
  const codes: [ProblemCode, boolean][] = [
    ['unauthorized', auth !== 'none' || path === '/auth/session'],
    // A cookie from another origin is refused for every change, whatever the scope.
    ['forbidden', inProject || auth === 'admin' || auth === 'user' || changes],
    ['not_found', path.includes(':')],
    [
      'invalid_request',
      request !== undefined || upload === true || parameters.some((each) => each.name !== 'Last-Event-ID'),
    ],
    ['payload_too_large', request !== undefined || upload === true],
    ['unsupported_media_type', request !== undefined || upload === true],
  ];
  const shaped = codes.filter(([, applies]) => applies).map(([code]) => code);
  return [...new Set([...shaped, ...problems, 'internal' as const, 'unavailable' as const])];
}

/** The group of the routes that serve operators; they need no sign-in and answer no problems. */
export const operations = 'Operations';

/** One response of a JSON body. */
export function answer(status: number, schema: TSchema, description: string): Route['responses'][number] {
  return { status, response: { description, schema } };
}

export const ok = (schema: TSchema, description = 'Done.') => [answer(200, schema, description)];
export const created = (schema: TSchema) => [answer(201, schema, 'Created.')];

type Ungrouped = Omit<Route, 'group' | 'section'> & { section?: number };

/** The routes of one group; each stands in `section` unless it says otherwise. */
export function grouped(group: string, section: number, list: Ungrouped[]): Route[] {
  return list.map((route) => ({ section, ...route, group }));
}
