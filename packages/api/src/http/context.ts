import type Koa from 'koa';

/** What the first middleware puts on every request. */
export interface State {
  requestId: string;
}

/** A request as routes see it: Koa's context with the path's parameters. */
export type Ctx = Koa.ParameterizedContext<State> & { params?: Record<string, string> };
