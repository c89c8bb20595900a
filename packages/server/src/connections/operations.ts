import { OpCode } from '@zabra/protocol'

/** Bytes of the xid and the op code, with which every request begins. */
export const HEADER_BYTES = 8

const writes: ReadonlySet<number> = new Set([
  OpCode.create,
  OpCode.create2,
  OpCode.createContainer,
  OpCode.createTTL,
  OpCode.delete,
  OpCode.setData,
  OpCode.setACL,
  OpCode.multi,
  OpCode.reconfig,
  OpCode.closeSession,
])

const reads: ReadonlySet<number> = new Set([
  OpCode.exists,
  OpCode.getData,
  OpCode.getACL,
  OpCode.getChildren,
  OpCode.getChildren2,
  OpCode.sync,
  OpCode.ping,
  OpCode.checkWatches,
  OpCode.removeWatches,
  OpCode.multiRead,
  OpCode.setWatches,
  OpCode.setWatches2,
  OpCode.getEphemerals,
  OpCode.getAllChildrenNumber,
  OpCode.addWatch,
  OpCode.whoAmI,
])

const WRITE = 1
const READ = 2
/** The least op code is that of the end of a session, and the largest is below 128; everything else is no operation. */
const LEAST = -16
const kinds = new Uint8Array(144)
for (const type of writes) kinds[type - LEAST] = WRITE
for (const type of reads) kinds[type - LEAST] = READ

/** Whether a client may ask for the operation and it changes something. */
export const isWrite = (type: number): boolean => kinds[type - LEAST] === WRITE
/** Whether a client may ask for the operation and it changes nothing. */
export const isRead = (type: number): boolean => kinds[type - LEAST] === READ

/** The short names that `cons` shows. */
const names: Readonly<Record<number, string>> = {
  [OpCode.notification]: 'NOTI',
  [OpCode.create]: 'CREA',
  [OpCode.create2]: 'CRE2',
  [OpCode.createContainer]: 'CRCO',
  [OpCode.createTTL]: 'CTTL',
  [OpCode.delete]: 'DELE',
  [OpCode.exists]: 'EXIS',
  [OpCode.getData]: 'GETD',
  [OpCode.setData]: 'SETD',
  [OpCode.getACL]: 'GETA',
  [OpCode.setACL]: 'SETA',
  [OpCode.getChildren]: 'GETC',
  [OpCode.getChildren2]: 'GETC',
  [OpCode.sync]: 'SYNC',
  [OpCode.ping]: 'PING',
  [OpCode.check]: 'CHEC',
  [OpCode.multi]: 'MULT',
  [OpCode.multiRead]: 'MLTR',
  [OpCode.reconfig]: 'RECO',
  [OpCode.checkWatches]: 'CHKW',
  [OpCode.removeWatches]: 'REMW',
  [OpCode.setWatches]: 'SETW',
  [OpCode.setWatches2]: 'STW2',
  [OpCode.addWatch]: 'ADDW',
  [OpCode.getEphemerals]: 'GETE',
  [OpCode.getAllChildrenNumber]: 'GETACN',
  [OpCode.whoAmI]: 'HOMI',
  [OpCode.closeSession]: 'CLOS',
  [OpCode.createSession]: 'SESS',
}

export const lastOperationName = (type: number): string => names[type] ?? 'NA'
