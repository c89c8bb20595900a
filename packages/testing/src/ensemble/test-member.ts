import type { Server } from '@zabra/server'

export type Role = Server['role']

/** A server that a test may start, stop and harm, in its own process or another one. */
export interface TestMember {
  /** For connect strings: `127.0.0.1:` and its port. It keeps the port when it is started again. */
  readonly address: string
  readonly isRunning: boolean
  /** What it is in its ensemble; undefined while it is down. */
  readonly role: Role | undefined
  /** Whether it answers clients. */
  readonly isServing: boolean
  /** Starts it, on what its disk has. */
  start(): Promise<this>
  /** Ends it at once, as `kill -9` does: connections break, and what is on its way is lost. */
  kill(): Promise<void>
  /** Lets it stand still: it holds its connections and does nothing, until `resume`. */
  pause(): void
  resume(): void
  /** Stops it in good order. */
  close(): Promise<void>
  /** Breaks its ways to these ports of other members, and to no others, until it is called again. */
  blockPorts(ports: readonly number[]): void
}
