import type { Client } from '../types.ts'

/** What the examples of the README find around them. */
export interface ExampleContext {
  readonly client: Client
  readonly bytes: (text: string) => Uint8Array
  readonly console: { log(...words: unknown[]): void }
}
