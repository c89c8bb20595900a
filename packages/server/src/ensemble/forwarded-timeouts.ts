import { OpCode } from '@zabra/protocol'
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
 * Returns the body of a request that a learner forwards. That of one that is not believed has such a timeout where it creates a session,
 * and an array of its own: a short request that waits would otherwise hold the memory of all that was read with it.
 */
export function forwardedBody(
  context: Context,
  learner: Forwarder,
  { type, body }: { readonly type: number; readonly body: Uint8Array },
): Uint8Array {
  if (isBelieved(context, learner)) return body
  const copy = new Uint8Array(body)
  if (type !== OpCode.createSession || body.length < 4) return copy
  const view = new DataView(copy.buffer)
  view.setInt32(0, forwardedTimeout(context, learner, view.getInt32(0)))
  return copy
}
