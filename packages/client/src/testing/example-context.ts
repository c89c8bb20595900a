import type { Client } from '../client-api.ts'

/** The variables that the README examples may use. */
export interface ExampleContext {
  readonly client: Client
  readonly bytes: (text: string) => Uint8Array
  readonly console: { log(...words: unknown[]): void }
}
