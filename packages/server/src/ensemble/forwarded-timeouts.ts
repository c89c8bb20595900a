import { OpCode } from '@zabra/protocol'
import type { ForwardedRequest } from '../core/zab/index.ts'
import type { MemberContext } from './context.ts'
import { isBelieved, type Forwarder } from './forwarded-identities.ts'

type Context = Pick<MemberContext, 'membership' | 'security' | 'settings'>

/**
 * Returns the timeout of a session that a learner names. That of one that is not believed is at most the one of a client: the memory for
 * sessions would otherwise be spent for weeks, and a session could be kept for ever.
 */
export const forwardedTimeout = (context: Context, learner: Forwarder, timeout: number): number =>
  timeout <= context.settings.maxSessionTimeoutMs || isBelieved(context, learner)
    ? timeout
    : context.settings.maxSessionTimeoutMs

/**
 * Returns a request as it is executed for a learner. For one that is not believed the body is a copy, so that a short request that waits
 * does not hold the memory of all that was read with it. Where it creates a session, `forwardedTimeout` limits its timeout.
 */
export function withForwardedTimeout(
  context: Context,
  learner: Forwarder,
  request: ForwardedRequest,
): ForwardedRequest {
  if (isBelieved(context, learner)) return request
  const body = new Uint8Array(request.body)
  if (request.type === OpCode.createSession && body.length >= 4) {
    const view = new DataView(body.buffer)
    view.setInt32(0, forwardedTimeout(context, learner, view.getInt32(0)))
  }
  return { ...request, body }
}
