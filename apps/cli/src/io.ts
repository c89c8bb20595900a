import type { Readable, Writable } from 'node:stream'
import type { Platform } from '@zabra/runtime'

/** Where text goes; on a terminal it says how wide. */
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number }

/** Everything outside of the program that it touches, so that a test can stand in for it. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(raw: boolean): unknown }
  readonly stdout: Output
  readonly stderr: Output
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly version: string
  /** Aborts with an `Interrupted` on Ctrl-C and when the reader of the output is gone. */
  readonly signal: AbortSignal
  readonly platform: Pick<Platform, 'disk' | 'compression' | 'system' | 'random'>
}

/** Prints lines to standard output. */
export function print(io: Io, ...lines: readonly string[]): void {
  for (const line of lines) io.stdout.write(`${line}\n`)
}

/** Prints a line to standard error, for people. */
export function note(io: Io, line: string): void {
  io.stderr.write(`zabra: ${line}\n`)
}

/** Prints one JSON value in a line. 64-bit numbers are text, as hexadecimal ones are in all other output. */
export function printJson(io: Io, value: unknown): void {
  print(
    io,
    JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? `0x${part.toString(16)}` : part)),
  )
}

/** Everything that standard input holds. */
export async function readInput(io: Io): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  for await (const chunk of io.stdin) chunks.push(Buffer.from(chunk as Uint8Array | string))
  return new Uint8Array(Buffer.concat(chunks))
}
