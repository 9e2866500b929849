import Router from '@koa/router';
import { readAttachment, storeAttachment } from '@turnkeep/shared/chat/attachments';
import { FileName } from '@turnkeep/shared/contract/chat';
import { accept, compile } from '@turnkeep/shared/contract/validate';
import type { ChatDeps } from '../deps.js';
import { describeFile } from '../http/content-disposition.js';
import type { State } from '../http/context.js';
import type { Guard } from '../http/guard.js';
import { readFile } from '../http/incoming-message.js';
import { found, pathId } from '../http/not-found.js';
import { readUpload } from '../http/upload.js';
import { AGENT, requireEnabled } from './chat.js';

const checkFileName = compile<string>(FileName);

/** Attachments that are sent before their message, and their bytes (contract, sections 4 and 5). */
export function attachmentRoutes(deps: ChatDeps, guard: Guard): Router<State> {
  const { db, attachmentStore, config } = deps;
  const router = new Router<State>();

  router.post(`${AGENT}/chat/attachments`, async (ctx) => {
    const { agent, userId } = await guard.agent(ctx, 'agent:execute');
    requireEnabled(deps);
    const upload = await readUpload(ctx, config.limits.maxAttachmentBytes);
    const fileName = accept(checkFileName(upload.fileName), 'The file name');
    const file = await readFile(fileName, upload.data, config.limits, '/file');
    ctx.body = await storeAttachment(db, attachmentStore, { agentId: agent.id, userId }, file);
    ctx.status = 201;
  });

  router.get(`${AGENT}/chat/attachments/:attachmentId`, async (ctx) => {
    const { agent, userId } = await guard.agent(ctx, 'agent:read');
    const id = found(pathId(ctx.params.attachmentId));
    const file = found(await readAttachment(db, attachmentStore, { agentId: agent.id, userId }, id));
    describeFile(ctx, file.mimeType, file.fileName);
    ctx.body = file.data;
  });

  return router;
}
