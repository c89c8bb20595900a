import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { createInterface, type Interface } from 'node:readline'
import { resolve } from 'node:path'

const python = 'python3'
const script = resolve(import.meta.dirname, 'terminal.py')

/** Whether there is a python that opens terminals. */
export const hasTerminals = (): boolean =>
  spawnSync(python, ['-c', 'import pty, termios'], { stdio: 'ignore' }).status === 0

interface Answer {
  readonly fine: boolean
  readonly shown?: string
  readonly echoes?: boolean
  readonly code?: number
}

/** A program in a terminal of its own, as a person has it before them. */
export class Terminal {
  readonly #driver: ChildProcessWithoutNullStreams
  readonly #answers: AsyncIterator<string>
  readonly #reader: Interface

  constructor(argv: readonly string[], environment: Readonly<Record<string, string>>) {
    const env = { ...process.env, TERM: 'xterm', ...environment }
    this.#driver = spawn(python, [script, ...argv], { env, stdio: ['pipe', 'pipe', 'pipe'] })
    this.#reader = createInterface({ input: this.#driver.stdout })
    this.#answers = this.#reader[Symbol.asyncIterator]()
  }

  /** Types one key after the other. */
  type(text: string): Promise<unknown> {
    return this.#step({ type: text })
  }

  /** Types all of it at once; for what is long, and for what is not shown. */
  paste(text: string): Promise<unknown> {
    return this.#step({ paste: text })
  }

  /** Types, and waits until the terminal shows a text that fits. Gives all that it has shown since the last wait. */
  async shows(expected: RegExp, typed = ''): Promise<string> {
    if (typed !== '') await this.type(typed)
    const { fine, shown = '' } = await this.#step({ expect: expected.source })
    if (!fine) throw new Error(`Expected ${expected.source}, got ${JSON.stringify(shown)}`)
    return shown
  }

  resize(rows: number, columns: number): Promise<unknown> {
    return this.#step({ resize: [rows, columns] })
  }

  signal(name: NodeJS.Signals): Promise<unknown> {
    return this.#step({ signal: name })
  }

  /** Whether lines are edited and shown by the system again, as the program found it. */
  async echoes(): Promise<boolean> {
    return (await this.#step({ state: true })).echoes === true
  }

  /** Waits for the end of the program. Gives its exit code, or the negative number of a signal. */
  async end(): Promise<{ code: number; shown: string }> {
    const { fine, code = 0, shown = '' } = await this.#step({ end: true })
    if (!fine) throw new Error(`Expected the program to end, got ${JSON.stringify(shown)}`)
    return { code, shown }
  }

  [Symbol.dispose](): void {
    this.#reader.close()
    this.#driver.kill('SIGKILL')
  }

  async #step(step: object): Promise<Answer> {
    this.#driver.stdin.write(`${JSON.stringify(step)}\n`)
    const { value, done } = await this.#answers.next()
    if (done === true) throw new Error('The driver of the terminal has ended')
    return JSON.parse(value as string) as Answer
  }
}
