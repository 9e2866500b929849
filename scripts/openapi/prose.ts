/** The passages of docs/http-api.md that no schema says. */

export const introduction = `# The HTTP interface

Written by \`npm run docs\` from the schemas that the server checks with; the same as OpenAPI 3.1 is [openapi.json](openapi.json).
Do not edit it by hand.

**Signing in.** Every request carries \`Authorization: Bearer TOKEN\` or the session cookie that \`POST /auth/session\` sets. A request that
changes something with a cookie must come from the same origin. There is no CORS.

**Order of the checks.** 401; a project that you are no member of, 404; a scope that you lack, 403; what is not there or not
yours, 404 with the same body for both; then 400; then 409, 422 and 429.

**Errors** are \`application/problem+json\` ([Problem](#problem)); their codes stand under [Problems](#problems). A 503 has \`Retry-After\`, and
may have been committed: a retry with the same \`Idempotency-Key\` is safe.

**Text** is Unicode and comes back exactly as it went in. U+0000 and lone surrogates are refused. Bodies are nested at most 64 levels
deep. Ids are UUIDs, times are RFC 3339 in UTC. The limits that the environment sets (\`MAX_MESSAGE_CHARS\`, \`MAX_ATTACHMENTS\`,
\`MAX_ATTACHMENT_BYTES\`, \`MAX_REQUEST_BYTES\`, \`MAX_PENDING\`, \`MAX_STREAMS\`) come on top of those here.`;

export const streams = `Each event is \`data: <one JSON object with a "type">\`, and, for events of an execution, \`id: <cursor>\`. Comments (\`: keep-alive\`) go
out every 15 s. Events arrive in order, none twice. A cursor is opaque: give it back as \`Last-Event-ID\`. A closed connection ends the relaying
and nothing else. No event is larger than 64 KiB, but for \`snapshot\` and the \`message\` of \`execution-started\` and \`message-steered\`.`;
