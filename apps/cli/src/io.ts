import type { Readable, Writable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import type { Platform } from '@zabra/runtime'
import { safe, safeJson } from './text/bytes.ts'

/** An output stream; a terminal also has a width. */
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number }

/** Streams, environment and platform of the program, which tests replace. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(raw: boolean): unknown }
  readonly stdout: Output
  readonly stderr: Output
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly version: string
  /** Aborts with an `Interrupted` on a signal and when the reader of the output has closed it. */
  readonly signal: AbortSignal
  readonly platform: Pick<Platform, 'disk' | 'compression' | 'system' | 'random'>
}

/** Prints lines to standard output. */
export function print(io: Io, ...lines: readonly string[]): void {
  for (const line of lines) io.stdout.write(`${line}\n`)
}

/** Prints a line for the user to standard error. Parts of it may be what a server has said. */
export function note(io: Io, line: string): void {
  io.stderr.write(`zabra: ${safe(line)}\n`)
}

/** Prints one JSON value on a line. A bigint becomes a string in hexadecimal, as in all other output. */
export function printJson(io: Io, value: unknown): void {
  print(
    io,
    safeJson(
      JSON.stringify(value, (_, part: unknown) =>
        typeof part === 'bigint' ? `0x${part.toString(16)}` : part,
      ),
    ),
  )
}

/** Resolves after some milliseconds. Rejects with an `Interrupted` when the program is to end. */
export async function pause(io: Io, ms: number): Promise<void> {
  await setTimeout(ms, undefined, { signal: io.signal }).catch(() => io.signal.throwIfAborted())
}

/** Reads standard input to its end. */
export async function readInput(io: Io): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  for await (const chunk of io.stdin) chunks.push(Buffer.from(chunk as Uint8Array | string))
  return new Uint8Array(Buffer.concat(chunks))
}
