import { formatZxid } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import type { BackupSource, SourceLog, SourceSnapshot } from './backup-writer.ts'
import { BackupError } from './errors.ts'

/** A response of the HTTP port of a server. Header names are in lower case. */
export interface SourceResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Throws when the connection is lost before the end. */
  readonly chunks: AsyncIterable<Uint8Array>
}

/** Sends a request to the HTTP port of a server. Rejects when there is no answer, or one whose status is not in `accepts`. */
export type SourceRequest = (
  method: 'GET' | 'POST',
  path: string,
  options: { readonly accepts: readonly number[] },
) => Promise<SourceResponse>

const GONE = 410
/** Longest answer that is no file, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024

/** Returns a running server as the source of backups. */
export function httpSource(name: string, request: SourceRequest): BackupSource {
  return {
    name,
    async takeSnapshot(): Promise<SourceSnapshot> {
      const { chunks } = await request('POST', '/api/v1/snapshots', { accepts: [200] })
      const { file, zxid, bytes } = parseTaken(await textOf(chunks))
      const content = await request('GET', `/api/v1/snapshots/content?file=${file}`, { accepts: [200] })
      return { file, zxid, chunks: ofLength(content.chunks, bytes, file) }
    },
    async readLog(after: Zxid): Promise<SourceLog | undefined> {
      const path = `/api/v1/log?after=0x${formatZxid(after)}`
      const { status, headers, chunks } = await request('GET', path, { accepts: [200, GONE] })
      if (status === GONE) return undefined
      const digest = headers['zabra-digest']
      return {
        upTo: zxidIn(headers['zabra-up-to']),
        nodes: Number(headers['zabra-nodes']),
        digest: digest === undefined || !/^[\da-f]{16}$/.test(digest) ? null : digest,
        chunks,
      }
    },
  }
}

function parseTaken(text: string): { readonly file: string; readonly zxid: Zxid; readonly bytes: number } {
  try {
    const { file, zxid, bytes } = JSON.parse(text) as Record<string, unknown>
    if (
      typeof file === 'string' &&
      /^snapshot\.[\da-f]{1,14}(?:\.gz|\.snappy)?$/.test(file) &&
      typeof bytes === 'number'
    )
      return { file, zxid: zxidIn(zxid), bytes }
  } catch (cause) {
    throw notUnderstood(cause)
  }
  throw notUnderstood()
}

function zxidIn(value: unknown): Zxid {
  if (typeof value !== 'string' || !/^0x[\da-f]{1,14}$/.test(value)) throw notUnderstood()
  return Number.parseInt(value.slice(2), 16)
}

const notUnderstood = (cause?: unknown): BackupError =>
  new BackupError(
    'The answer of the server is not understood. Check that --admin names the HTTP port of a Zabra server.',
    { cause },
  )

async function* ofLength(
  chunks: AsyncIterable<Uint8Array>,
  bytes: number,
  file: string,
): AsyncGenerator<Uint8Array> {
  let received = 0
  for await (const chunk of chunks) {
    received += chunk.length
    if (received > bytes) break
    yield chunk
  }
  if (received !== bytes)
    throw new BackupError(
      `Expected ${bytes} bytes of ${file}, got ${received > bytes ? 'more' : received}. Try again.`,
    )
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let [text, length] = ['', 0]
  for await (const chunk of chunks) {
    length += chunk.length
    if (length > MAX_ANSWER_BYTES) throw notUnderstood()
    text += decoder.decode(chunk, { stream: true })
  }
  return text
}
