import { ErrorCode, OpCode, type Reader, type Writer } from '@zabra/protocol'
import { userName } from '../auth/index.ts'
import type { ReadCaller, ReadContext } from '../reads/types.ts'
import type { NotifiedWatcher } from '../watches/index.ts'
import { defineOperation } from './types.ts'

type Context = ReadContext<NotifiedWatcher>
type Caller = ReadCaller<NotifiedWatcher>

/** Echoes the path. The pipeline has waited until everything committed before the sync is applied. */
function sync(_context: Context, body: Reader, writer: Writer): number {
  writer.string(body.string())
  return ErrorCode.OK
}

function whoAmI(_context: Context, _body: Reader, writer: Writer, { identities }: Caller): number {
  writer.int(identities.length)
  for (const identity of identities) {
    writer.string(identity.scheme)
    writer.string(userName(identity))
  }
  return ErrorCode.OK
}

export const CONNECTION_READS = [
  defineOperation({ code: OpCode.ping, name: 'PING', kind: 'read', read: () => ErrorCode.OK }),
  defineOperation({ code: OpCode.sync, name: 'SYNC', kind: 'read', read: sync }),
  defineOperation({ code: OpCode.whoAmI, name: 'HOMI', kind: 'read', read: whoAmI }),
]
