import { bytes } from '../harness/bytes.ts'

/** What one step of a case does on one of its connections. */
export type Step =
  | {
      readonly do: 'request'
      readonly on: string
      readonly type: number
      readonly body: Buffer
      readonly xid?: number
    }
  /** Written as it is, length included or missing. */
  | { readonly do: 'raw'; readonly on: string; readonly bytes: Buffer }
  /** Several requests in one write. */
  | { readonly do: 'pipeline'; readonly on: string; readonly requests: readonly Request[] }
  /** A connection with a handshake body of its own. `asIs` sends the bytes without adding a length. */
  | {
      readonly do: 'connect'
      readonly on: string
      readonly body?: Buffer
      readonly asIs?: boolean
      /** Requests that the body holds behind the handshake: xid and type. */
      readonly behind?: readonly (readonly [xid: number, type: number])[]
    }
  /** Resumes the session of another connection. */
  | {
      readonly do: 'resume'
      readonly on: string
      readonly of: string
      readonly spoil?: boolean
      readonly timeoutMs?: number
    }
  | { readonly do: 'drop'; readonly on: string }
  /** setWatches lists relative to the zxid at the beginning of the case, plus this many. */
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

/** A request on connection `a`, or on the one named. */
export function request(type: number, body: Buffer = bytes().done(), on = 'a', xid?: number): Step {
  return { do: 'request', on, type, body, ...(xid === undefined ? {} : { xid }) }
}
