/** Every route of the HTTP interface, in one table: the source of docs/openapi.json and docs/http-api.md. */
import type { Route } from './route.js';
import { chatRoutes } from './routes-chat.js';
import { manageRoutes } from './routes-manage.js';

export const routes: readonly Route[] = [...chatRoutes, ...manageRoutes];
