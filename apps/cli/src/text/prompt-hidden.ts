import { Interrupted } from '../exit-codes.ts'
import type { Io } from '../io.ts'

const ENTER = /^[\r\n]$/
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const CTRL_U = '\u0015'
const isErasing = (character: string): boolean => character === '\b' || character === '\u007f'

/** Prompts for a line on the terminal without echo. Rejects with an `Interrupted` on Ctrl-C and Ctrl-D. */
export function promptHidden({ stdin, stderr, signal }: Io, question: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let typed: string[] = []
    const restore = (): void => {
      signal.removeEventListener('abort', abort)
      stdin.off('data', onData)
      stdin.pause()
      stdin.setRawMode?.(false)
      stderr.write('\n')
    }
    const abort = (): void => {
      restore()
      reject(signal.reason as Error)
    }
    const onData = (chunk: Uint8Array | string): void => {
      const characters = Array.from(typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk))
      for (const [index, character] of characters.entries()) {
        if (ENTER.test(character)) {
          restore()
          // Characters typed after Enter stay in the stream for the next reader.
          const rest = characters.slice(index + 1).join('')
          if (rest !== '') stdin.unshift(Buffer.from(rest))
          return resolve(typed.join(''))
        }
        if (character === CTRL_C || (character === CTRL_D && typed.length === 0)) {
          restore()
          return reject(new Interrupted('SIGINT'))
        }
        if (character === CTRL_U) typed = []
        else if (isErasing(character)) typed.pop()
        else if (character >= ' ') typed.push(character)
      }
    }
    // Raw mode before the prompt: the user may type as soon as it appears.
    stdin.setRawMode?.(true)
    stdin.on('data', onData)
    stdin.resume()
    signal.addEventListener('abort', abort, { once: true })
    stderr.write(question)
  })
}
