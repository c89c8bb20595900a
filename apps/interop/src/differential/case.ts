import { bytes } from '../harness/bytes.ts'

/** A step of a case on one of its connections. */
export type Step =
  | {
      readonly do: 'request'
      readonly on: string
      readonly type: number
      readonly body: Buffer
      readonly xid?: number
    }
  /** Writes raw bytes, with or without a frame length. */
  | { readonly do: 'raw'; readonly on: string; readonly bytes: Buffer }
  /** Sends several requests in one write. */
  | { readonly do: 'pipeline'; readonly on: string; readonly requests: readonly Request[] }
  /** Opens a connection with this handshake body. `asIs` sends the bytes without a frame length. */
  | {
      readonly do: 'connect'
      readonly on: string
      readonly body?: Buffer
      readonly asIs?: boolean
      /** Requests that follow the handshake in the body: xid and type. */
      readonly behind?: readonly (readonly [xid: number, type: number])[]
    }
  /** Resumes the session of another connection; `spoil` sends a wrong password. */
  | {
      readonly do: 'resume'
      readonly on: string
      readonly of: string
      readonly spoil?: boolean
      readonly timeoutMs?: number
    }
  | { readonly do: 'drop'; readonly on: string }
  /** Sends setWatches with a zxid relative to that at the start of the case. */
  | {
      readonly do: 'setWatches'
      readonly on: string
      readonly plus: number
      readonly lists: readonly (readonly string[] | null)[]
      readonly xid?: number
    }

export interface Request {
  readonly type: number
  readonly body: Buffer
  readonly xid?: number
}

export interface Case {
  readonly name: string
  readonly steps: readonly Step[]
}

/** Adds a case. Its steps run below a root node of their own, so that cases do not see each other. */
export type AddCase = (name: string, steps: (root: string) => readonly Step[]) => void

/** Returns a request on connection `a` or on the named one. */
export function request(type: number, body: Buffer = bytes().done(), on = 'a', xid?: number): Step {
  return { do: 'request', on, type, body, ...(xid === undefined ? {} : { xid }) }
}
