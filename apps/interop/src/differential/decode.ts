import { Fields, readStat } from '../harness/bytes.ts'
import { op } from '../harness/opcodes.ts'

export interface Masks {
  /** The last zxid at the start of the case. Zxids are printed relative to it. */
  base: bigint
  readonly sessions: Map<bigint, string>
  readonly now: bigint
}

/** Formats a reply as a line of text, field by field, or in hexadecimal when it cannot be decoded. */
export function decodeReply(reply: Buffer, type: number | undefined, masks: Masks): string {
  const fields = new Fields(reply)
  try {
    const [xid, zxid, err] = [fields.int(), fields.long(), fields.int()]
    const head = `xid=${xid} zxid=${maskZxid(zxid, masks)} err=${err}`
    if (xid === -1 && type === undefined)
      return `${head} event type=${fields.int()} state=${fields.int()} path=${text(fields.str())}${tail(fields)}`
    if (fields.remaining === 0) return head
    if (err !== 0 && type !== op.sasl && type !== op.multi)
      return `${head} body=${fields.rest().toString('hex')}`
    return `${head} ${body(fields, type, masks)}${tail(fields)}`
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return `undecodable as type ${type}: ${reply.toString('hex')}`
  }
}

const text = (value: string | null): string => (value === null ? 'null' : JSON.stringify(value))
const tail = (fields: Fields): string =>
  fields.remaining > 0 ? ` extra=${fields.rest().toString('hex')}` : ''
const sorted = (values: (string | null)[] | null): string =>
  values === null ? 'null' : `[${values.map(text).sort().join(' ')}]`

function maskZxid(zxid: bigint, { base }: Masks): string {
  if (zxid <= 0n) return String(zxid)
  return zxid >= base ? `base+${zxid - base}` : 'earlier'
}

function maskTime(time: bigint, { now }: Masks): string {
  const distance = time > now ? time - now : now - time
  return distance < 600_000n ? 'now' : String(time)
}

function stat(fields: Fields, masks: Masks): string {
  const s = readStat(fields)
  const owner =
    s.ephemeralOwner === 0n ? '0' : (masks.sessions.get(s.ephemeralOwner) ?? s.ephemeralOwner.toString(16))
  return (
    `c=${maskZxid(s.czxid, masks)} m=${maskZxid(s.mzxid, masks)} p=${maskZxid(s.pzxid, masks)} ` +
    `ctime=${maskTime(s.ctime, masks)} mtime=${maskTime(s.mtime, masks)}${s.czxid === s.mzxid && s.ctime !== s.mtime ? '(not ctime)' : ''} ` +
    `v=${s.version} cv=${s.cversion} av=${s.aversion} owner=${owner} length=${s.dataLength} children=${s.numChildren}`
  )
}

function acl(fields: Fields): string {
  const entries = fields.acl()
  return entries === null ? 'null' : `[${entries.map((e) => `${e.perms}:${e.scheme}:${e.id}`).join(' ')}]`
}

function data(fields: Fields): string {
  const value = fields.buffer()
  return value === null
    ? 'null'
    : value.length > 200
      ? `${value.length} bytes`
      : value.toString('hex') || 'empty'
}

function body(fields: Fields, type: number | undefined, masks: Masks): string {
  switch (type) {
    case op.create:
      return `path=${text(fields.str())}`
    case op.create2:
    case op.createContainer:
    case op.createTTL:
      return `path=${text(fields.str())} ${stat(fields, masks)}`
    case op.exists:
    case op.setData:
    case op.setACL:
      return stat(fields, masks)
    case op.getData:
    case op.reconfig:
      return `data=${data(fields)} ${stat(fields, masks)}`
    case op.getACL:
      return `acl=${acl(fields)} ${stat(fields, masks)}`
    case op.getChildren:
    case op.getEphemerals:
      return `names=${sorted(fields.strings())}`
    case op.getChildren2:
      return `names=${sorted(fields.strings())} ${stat(fields, masks)}`
    case op.sync:
      // Printed as bytes, because the reply encodes some characters differently.
      return `path=${data(fields)}`
    case op.addWatch:
      return `body-err=${fields.int()}`
    case op.getAllChildrenNumber:
      return `total=${fields.int()}`
    case op.whoAmI:
      return `ids=${fields
        .times(fields.int(), () => `${fields.str()}:${fields.str()}`)
        .sort()
        .join(',')}`
    case op.sasl:
      return `token=${data(fields)}`
    case op.multi:
    case op.multiRead:
      return multi(fields, masks)
    case undefined:
    default:
      return `body=${fields.rest().toString('hex')}`
  }
}

function multi(fields: Fields, masks: Masks): string {
  const results: string[] = []
  for (;;) {
    if (fields.remaining === 0) return `results=(${results.join(' | ')}) without end`
    const [type, done, err] = [fields.int(), fields.bool(), fields.int()]
    if (done) return `results=(${results.join(' | ')}) end=${type},${err}`
    const record =
      type === -1
        ? `code=${fields.int()}`
        : type === op.delete || type === op.check
          ? ''
          : body(fields, type, masks)
    results.push(`${type},${err} ${record}`.trim())
  }
}
