/** Who may do what: section 2, and the credentials of section 3. */
import Type, { type Static } from 'typebox';
import { closed, Id, Name, nullable, open, Timestamp } from './schema.js';

export type Role = Static<typeof Role>;
export const Role = Type.Enum(['viewer', 'user', 'editor', 'admin'], { title: 'Role' });

export type Scope = 'agent:read' | 'agent:execute' | 'agent:write' | 'project:manage';

const viewer: readonly Scope[] = ['agent:read'];
const user: readonly Scope[] = [...viewer, 'agent:execute'];
const editor: readonly Scope[] = [...user, 'agent:write'];
const admin: readonly Scope[] = [...editor, 'project:manage'];
const scopes: Readonly<Record<Role, ReadonlySet<Scope>>> = {
  viewer: new Set(viewer),
  user: new Set(user),
  editor: new Set(editor),
  admin: new Set(admin),
};

/** The scopes that a member of a project has by their role there (the table of section 2). */
export function scopesOf(role: Role): ReadonlySet<Scope> {
  return scopes[role];
}

export type CreateUser = Static<typeof CreateUser>;
export const CreateUser = closed('CreateUser', {
  email: Type.String({ format: 'email', maxLength: 320 }),
  name: Name,
});

export type CreateToken = Static<typeof CreateToken>;
export const CreateToken = closed('CreateToken', { name: Name });

export type CreateProject = Static<typeof CreateProject>;
export const CreateProject = closed('CreateProject', { name: Name });

export type SetMember = Static<typeof SetMember>;
export const SetMember = closed('SetMember', { role: Role });

export type SignIn = Static<typeof SignIn>;
export const SignIn = closed('SignIn', {
  token: Type.String({
    minLength: 1,
    maxLength: 1000,
    description: "A user's token, the admin token, or the code of a one-time link.",
  }),
});

export type CreateCredential = Static<typeof CreateCredential>;
export const CreateCredential = closed('CreateCredential', {
  name: Name,
  data: closed('CredentialData', {
    apiKey: Type.String({ minLength: 1, maxLength: 10_000, description: 'Never comes back out.', writeOnly: true }),
  }),
});

export type UserView = Static<typeof UserView>;
export const UserView = open('User', { id: Id, email: Type.String(), name: Type.String() });

export type UserListItem = Static<typeof UserListItem>;
export const UserListItem = open('UserListItem', { ...UserView.properties, createdAt: Timestamp });

export type UserList = Static<typeof UserList>;
export const UserList = open('UserList', { users: Type.Array(UserListItem) });

export type CreatedToken = Static<typeof CreatedToken>;
export const CreatedToken = open('CreatedToken', {
  id: Id,
  token: Type.String({ description: 'Shown this once; stored hashed.' }),
});

export type TokenList = Static<typeof TokenList>;
export const TokenList = open('TokenList', {
  tokens: Type.Array(open('TokenListItem', { id: Id, name: Type.String(), createdAt: Timestamp })),
});

export type SignInLink = Static<typeof SignInLink>;
export const SignInLink = open('SignInLink', {
  url: Type.String({ description: 'The code stands in the fragment. It signs in once.' }),
  expiresAt: Timestamp,
});

export type Me = Static<typeof Me>;
export const Me = open(
  'Me',
  {
    id: nullable(Id),
    email: nullable(Type.String()),
    name: nullable(Type.String()),
    instanceAdmin: Type.Boolean(),
  },
  'Who is signed in. `id`, `email` and `name` are null for the instance admin.',
);

export type ProjectView = Static<typeof ProjectView>;
export const ProjectView = open('Project', { id: Id, name: Type.String() });

export type ProjectList = Static<typeof ProjectList>;
export const ProjectList = open('ProjectList', {
  projects: Type.Array(open('ProjectListItem', { ...ProjectView.properties, role: Role })),
});

export type MemberView = Static<typeof MemberView>;
export const MemberView = open('Member', { userId: Id, role: Role });

export type MemberList = Static<typeof MemberList>;
export const MemberList = open('MemberList', {
  members: Type.Array(open('MemberListItem', { userId: Id, email: Type.String(), name: Type.String(), role: Role })),
});

export type CredentialView = Static<typeof CredentialView>;
export const CredentialView = open('Credential', { id: Id, name: Type.String() });

export type CredentialList = Static<typeof CredentialList>;
export const CredentialList = open('CredentialList', { credentials: Type.Array(CredentialView) });

export type Removed = Static<typeof Removed>;
export const Removed = open('Removed', { removed: Type.Literal(true) });

export type Deleted = Static<typeof Deleted>;
export const Deleted = open('Deleted', { deleted: Type.Literal(true) });
