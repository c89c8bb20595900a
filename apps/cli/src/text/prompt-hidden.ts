import { Interrupted } from '../exit-codes.ts'
import type { Io } from '../io.ts'

const ENTER = /^[\r\n]$/
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const CTRL_U = '\u0015'
const isErasing = (character: string): boolean => character === '\b' || character === '\u007f'

/** Asks for a line at the terminal without showing what is typed. Rejects with an `Interrupted` on Ctrl-C and Ctrl-D. */
export function promptHidden({ stdin, stderr, signal }: Io, question: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let typed: string[] = []
    const settle = (): void => {
      signal.removeEventListener('abort', abort)
      stdin.off('data', take)
      stdin.pause()
      stdin.setRawMode?.(false)
      stderr.write('\n')
    }
    const abort = (): void => {
      settle()
      reject(signal.reason as Error)
    }
    const take = (chunk: Uint8Array | string): void => {
      const characters = Array.from(typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk))
      for (const [index, character] of characters.entries()) {
        if (ENTER.test(character)) {
          settle()
          // What was typed ahead belongs to whoever reads next.
          const rest = characters.slice(index + 1).join('')
          if (rest !== '') stdin.unshift(Buffer.from(rest))
          return resolve(typed.join(''))
        }
        if (character === CTRL_C || (character === CTRL_D && typed.length === 0)) {
          settle()
          return reject(new Interrupted('SIGINT'))
        }
        if (character === CTRL_U) typed = []
        else if (isErasing(character)) typed.pop()
        else if (character >= ' ') typed.push(character)
      }
    }
    // Who sees the question may type at once, and is not to see it.
    stdin.setRawMode?.(true)
    stdin.on('data', take)
    stdin.resume()
    signal.addEventListener('abort', abort, { once: true })
    stderr.write(question)
  })
}
