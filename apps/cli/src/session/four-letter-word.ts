import type { ServerAddress, Transport } from '@zabra/client'
import { formatServer } from './address.ts'

/** Maximum length of a reply in bytes. `cons` of a server with 100,000 connections is shorter. */
export const MAX_REPLY_BYTES = 16 * 1024 * 1024

/**
 * Sends a four-letter word and resolves to the reply, cut at `MAX_REPLY_BYTES`. Rejects when no reply comes within `timeoutMs`.
 */
export async function sendFourLetterWord(
  transport: Transport,
  at: ServerAddress,
  word: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string> {
  const attempt = new AbortController()
  const abort = (): void => attempt.abort(signal.reason)
  const timeoutError = new Error(`${formatServer(at)} did not answer ${word} within ${timeoutMs} ms`)
  const timer = setTimeout(() => attempt.abort(timeoutError), timeoutMs)
  signal.addEventListener('abort', abort, { once: true })
  try {
    const connection = await transport.open(at, attempt.signal)
    return await new Promise<string>((resolve, reject) => {
      const decoder = new TextDecoder()
      let text = ''
      let left = MAX_REPLY_BYTES
      connection.setHandler({
        data: (chunk) => {
          text += decoder.decode(chunk.subarray(0, left), { stream: true })
          left -= chunk.length
          if (left > 0) return
          resolve(text)
          connection.destroy()
        },
        drain: () => {},
        closed: (cause) => (cause === undefined || text !== '' ? resolve(text) : reject(cause)),
      })
      attempt.signal.addEventListener('abort', () => connection.destroy(attempt.signal.reason as Error))
      connection.write(new TextEncoder().encode(word))
    })
  } catch (error) {
    throw attempt.signal.aborted ? attempt.signal.reason : error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

/** Whether a reply says that the word is not in `4lw.commands.whitelist`. */
export const isNotWhitelisted = (text: string): boolean =>
  text.includes('is not executed because it is not in the whitelist')

/** Whether a reply says that the server is not serving, for example during an election. */
export const isNotServing = (text: string): boolean => text.includes('is not currently serving requests')
