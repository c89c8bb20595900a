import {
  readConnectRequestBase,
  readConnectResponseBase,
  writeConnectRequestBase,
  writeConnectResponseBase,
} from './gen/records.gen.ts'
import type { ConnectRequestBase, ConnectResponseBase } from './schema/records.ts'
import type { Reader } from './wire/reader.ts'
import type { Writer } from './wire/writer.ts'

/** The first frame of a client. `readOnly` is absent from clients before 3.4, which do not expect it in the response. */
export interface ConnectRequest extends ConnectRequestBase {
  readonly readOnly?: boolean | undefined
}

/** The first frame of a server. A `timeOut` of 0 means that the session is not valid. */
export interface ConnectResponse extends ConnectResponseBase {
  readonly readOnly?: boolean | undefined
}

export function readConnectRequest(r: Reader): ConnectRequest {
  const base = readConnectRequestBase(r)
  return r.remaining > 0 ? { ...base, readOnly: r.bool() } : base
}

export function writeConnectRequest(w: Writer, v: ConnectRequest): void {
  writeConnectRequestBase(w, v)
  if (v.readOnly !== undefined) w.bool(v.readOnly)
}

export function readConnectResponse(r: Reader): ConnectResponse {
  const base = readConnectResponseBase(r)
  return r.remaining > 0 ? { ...base, readOnly: r.bool() } : base
}

export function writeConnectResponse(w: Writer, v: ConnectResponse): void {
  writeConnectResponseBase(w, v)
  if (v.readOnly !== undefined) w.bool(v.readOnly)
}
