import type { Server } from '@zabra/server'

export type Role = Server['role']

/**
 * A server that a test can start, stop, kill, pause and partition, in the test's process or in a process of its own.
 */
export interface TestMember {
  /** `127.0.0.1:` and the client port, for connect strings. A restart keeps the port. */
  readonly address: string
  readonly isRunning: boolean
  /** The role in the ensemble; undefined while the server is down. */
  readonly role: Role | undefined
  /** Whether the server serves clients. */
  readonly isServing: boolean
  /** Starts the server on the data that its disk holds. */
  start(): Promise<this>
  /** Ends the server at once, as SIGKILL does: connections break and requests in flight are lost. */
  kill(): Promise<void>
  /** Pauses the server until `resume`: it keeps its connections and does nothing. */
  pause(): void
  resume(): void
  /** Shuts the server down. */
  close(): Promise<void>
  /** Blocks connections to exactly these ports of other members, until the next call. */
  blockPorts(ports: readonly number[]): void
}
