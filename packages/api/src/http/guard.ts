import { type Found, lookUp, type Principal, type Subject } from '@turnkeep/shared/access/look-up';
import { hashOf, sameHash } from '@turnkeep/shared/access/secret';
import { prolongWebSession } from '@turnkeep/shared/access/web-sessions';
import { type Role, type Scope, scopesOf } from '@turnkeep/shared/contract/access';
import { ProblemError } from '@turnkeep/shared/contract/problems';
import type { Query } from '@turnkeep/shared/db/database';
import { cookieHash, readCookie, writeCookie } from '../auth/cookie.js';
import type { Ctx } from './context.js';
import { found, notFound, pathId } from './not-found.js';
import { requireSameOrigin } from './same-origin.js';

/** A user who makes a request, and by what: a token, a browser's sign-in, or a sign-in that a token made. */
export interface UserAccess {
  userId: string;
  tokenId: string | null;
  /** The hash of the cookie. */
  webSession: Buffer | null;
}

export interface ProjectAccess extends UserAccess {
  projectId: string;
  role: Role;
}

export interface AgentAccess extends ProjectAccess {
  agent: NonNullable<Found['agent']>;
}

/** Who somebody is; the instance admin's sign-in has been compared with the ADMIN_TOKEN of now. */
export type Caller = ({ kind: 'user' } & UserAccess) | { kind: 'admin'; webSession: Buffer | null };

/** Answers who makes a request and whether they may, in the order of checks of contract section 2. */
export interface Guard {
  /** Anybody who is signed in; 401. */
  anyone(ctx: Ctx): Promise<Caller>;
  /** A user; 401, and 403 for the instance admin. */
  user(ctx: Ctx): Promise<UserAccess>;
  /** The instance admin; 401, 404 for a user where there is no admin API, else 403. */
  admin(ctx: Ctx): Promise<void>;
  /** A member of the path's project with that scope; 401, 404, 403. */
  project(ctx: Ctx, scope: Scope): Promise<ProjectAccess>;
  /** The same, and the path's agent is there; 401, 404, 403, 404. One statement in all. */
  agent(ctx: Ctx, scope: Scope): Promise<AgentAccess>;
  /** The hash of ADMIN_TOKEN where `secret` is it, compared in constant time; else null. */
  adminHash(secret: string): Buffer | null;
}

interface GuardDeps {
  db: Query;
  config: { adminToken: string | null; publicUrl: string | null };
}

const NOTHING: Subject = { projectId: null, agentId: null };

type Seen = Omit<Found, 'principal'> & { caller: Caller };

export function createGuard({ db, config }: GuardDeps): Guard {
  const ownAdminHash = config.adminToken === null ? null : hashOf(config.adminToken);

  const isAdmin = (hash: Buffer) => ownAdminHash !== null && sameHash(hash, ownAdminHash);

  async function see(ctx: Ctx, subject: Subject): Promise<Seen> {
    // An Authorization header, whatever stands in it, means that the cookie is not asked.
    const seen =
      ctx.req.headers.authorization === undefined ? await byCookie(ctx, subject) : await byToken(ctx, subject);
    if (seen === null) throw new ProblemError('unauthorized', 'Send a valid token, or sign in.');
    return seen;
  }

  async function byToken(ctx: Ctx, subject: Subject): Promise<Seen | null> {
    const token = /^Bearer ([\x21-\x7e]+)$/i.exec(ctx.get('authorization'))?.[1];
    if (token === undefined) return null;
    const tokenHash = hashOf(token);
    if (isAdmin(tokenHash))
      return { caller: { kind: 'admin', webSession: null }, role: null, agent: null, prolong: false };
    const result = await lookUp(db, { tokenHash }, subject);
    return result && withCaller(result);
  }

  async function byCookie(ctx: Ctx, subject: Subject): Promise<Seen | null> {
    const cookie = readCookie(ctx);
    const hash = cookie === null ? null : cookieHash(cookie);
    if (cookie === null || hash === null) return null;
    const result = await lookUp(db, { webSessionHash: hash }, subject);
    const seen = result && withCaller(result);
    if (seen === null) return null;
    requireSameOrigin(ctx, config.publicUrl);
    if (seen.prolong) {
      await prolongWebSession(db, hash);
      writeCookie(ctx, config.publicUrl, cookie);
    }
    return seen;
  }

  function withCaller({ principal, ...rest }: Found): Seen | null {
    const caller = callerOf(principal, ownAdminHash);
    return caller && { ...rest, caller };
  }

  async function member(ctx: Ctx, scope: Scope, subject: Subject): Promise<{ access: ProjectAccess; seen: Seen }> {
    const seen = await see(ctx, subject);
    // The instance admin is a member of no project.
    if (seen.caller.kind === 'admin' || seen.role === null || subject.projectId === null) throw notFound();
    if (!scopesOf(seen.role).has(scope))
      throw new ProblemError('forbidden', `Your role in this project does not include ${scope}.`);
    return { access: { ...accessOf(seen.caller), projectId: subject.projectId, role: seen.role }, seen };
  }

  return {
    adminHash(secret) {
      const hash = hashOf(secret);
      return isAdmin(hash) ? hash : null;
    },
    anyone: async (ctx) => (await see(ctx, NOTHING)).caller,
    async user(ctx) {
      const { caller } = await see(ctx, NOTHING);
      if (caller.kind === 'admin') throw new ProblemError('forbidden', 'This is for users, not the instance admin.');
      return accessOf(caller);
    },
    async admin(ctx) {
      const { caller } = await see(ctx, NOTHING);
      if (caller.kind === 'admin') return;
      throw ownAdminHash === null ? notFound() : new ProblemError('forbidden', 'This is for the instance admin.');
    },
    project: async (ctx, scope) =>
      (await member(ctx, scope, { projectId: pathId(ctx.params?.projectId), agentId: null })).access,
    async agent(ctx, scope) {
      const subject = { projectId: pathId(ctx.params?.projectId), agentId: pathId(ctx.params?.agentId) };
      const { access, seen } = await member(ctx, scope, subject);
      return { ...access, agent: found(seen.agent) };
    },
  };
}

/** Null for a sign-in of the instance admin that was made with another ADMIN_TOKEN than today's. */
function callerOf(principal: Principal, ownAdminHash: Buffer | null): Caller | null {
  if (principal.kind === 'user') return principal;
  if (ownAdminHash === null || !sameHash(principal.adminHash, ownAdminHash)) return null;
  return { kind: 'admin', webSession: principal.webSession };
}

function accessOf({ userId, tokenId, webSession }: UserAccess): UserAccess {
  return { userId, tokenId, webSession };
}
