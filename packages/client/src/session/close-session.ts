import { OpCode } from '@zabra/protocol'
import type { Kind } from './slot.ts'

/** Ends the session; the server answers and closes the connection. */
export const closeSession: Kind = {
  name: 'closeSession',
  type: OpCode.closeSession,
  commits: true,
  encode() {},
  decode: () => undefined,
  repeatable: () => false,
}
