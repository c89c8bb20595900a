import { OPEN_ACL_UNSAFE, OpCode } from '@zabra/protocol'
import type { CreateTxn } from '../types.ts'

/** Returns the creation of a persistent node without data that every client may use, unless `given` says otherwise. */
export const createOf = (path: string, given: Partial<CreateTxn> = {}): CreateTxn => ({
  type: OpCode.create,
  path,
  data: null,
  acl: OPEN_ACL_UNSAFE,
  ephemeral: false,
  parentCVersion: -1,
  ...given,
})
