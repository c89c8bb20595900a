import type { Zxid } from '../core/types.ts'
import { jsonFields, type AuditClient, type AuditEvent } from './audit-event.ts'

/** What a line says of a write that has succeeded, beside who sent it. */
export type PlainChange = Pick<
  AuditEvent,
  'operation' | 'path' | 'mode' | 'version' | 'versionBefore' | 'bytes' | 'xid'
> & { readonly path: string; readonly zxid: Zxid }

const NO_STAMP = { time: 0, id: 0, serverId: 0 }

/**
 * Formats writes that have succeeded as JSON.
 *
 * Optimised: the fields about a client are formatted once, and the others put together as text.
 * Why: an object of all fields and its `JSON.stringify` cost ten times as much.
 * Rules: lines are those of `jsonFields`, with which `json-lines.test.ts` compares them.
 */
export class JsonLines {
  readonly #serverId: number
  #time = -1
  #timeText = ''
  /** The fields of clients, which stay the same object while they use one connection and do not log in. */
  readonly #clients = new WeakMap<AuditClient, string>()

  constructor(serverId: number) {
    this.#serverId = serverId
  }

  /** Returns the line with a number, without its newline. */
  format(client: AuditClient, change: PlainChange, id: number, time: number): string {
    if (time !== this.#time) {
      this.#time = time
      this.#timeText = new Date(time).toISOString()
    }
    const { operation, path, mode, version, versionBefore, bytes, xid, zxid } = change
    let line = `{"time":"${this.#timeText}","id":${id},"member":${this.#serverId},"event":"writes","op":"${operation}","result":"success",${this.#clientText(client)}"path":${JSON.stringify(path)}`
    if (mode !== undefined) line += `,"mode":"${mode}"`
    if (version !== undefined) line += `,"version":${version}`
    if (versionBefore !== undefined) line += `,"versionBefore":${versionBefore}`
    line += `,"zxid":"0x${zxid.toString(16)}"`
    if (bytes !== undefined) line += `,"bytes":${bytes}`
    return xid === undefined ? `${line}}` : `${line},"requestId":${xid}}`
  }

  /** Returns the fields about a client, with a comma behind them. */
  #clientText(client: AuditClient): string {
    let text = this.#clients.get(client)
    if (text === undefined) {
      const event = { ...client, category: 'writes', operation: '', result: 'success' } as const
      const whole = JSON.stringify(jsonFields(event, NO_STAMP))
      const before = '"result":"success"'
      const fields = whole.slice(whole.indexOf(before) + before.length + 1, -1)
      text = fields === '' ? '' : `${fields},`
      this.#clients.set(client, text)
    }
    return text
  }
}
