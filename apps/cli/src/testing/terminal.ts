import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { createInterface, type Interface } from 'node:readline'
import { resolve } from 'node:path'

const python = 'python3'
const script = resolve(import.meta.dirname, 'terminal.py')

/** Whether Python with pseudo-terminals is installed. */
export const hasTerminals = (): boolean =>
  spawnSync(python, ['-c', 'import pty, termios'], { stdio: 'ignore' }).status === 0

interface Answer {
  readonly isOk: boolean
  readonly shown?: string
  readonly echoes?: boolean
  readonly code?: number
}

/** A program in a pseudo-terminal. */
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

  /** Types key by key, waiting for the echo of each. */
  type(text: string): Promise<unknown> {
    return this.#step({ type: text })
  }

  /** Writes all of it at once; for long text and for text without echo. */
  paste(text: string): Promise<unknown> {
    return this.#step({ paste: text })
  }

  /** Types, and waits until the output matches. Resolves to the output since the last wait. */
  async shows(expected: RegExp, typed = ''): Promise<string> {
    if (typed !== '') await this.type(typed)
    const { isOk, shown = '' } = await this.#step({ expect: expected.source })
    if (!isOk) throw new Error(`Expected ${expected.source}, got ${JSON.stringify(shown)}`)
    return shown
  }

  resize(rows: number, columns: number): Promise<unknown> {
    return this.#step({ resize: [rows, columns] })
  }

  signal(name: NodeJS.Signals): Promise<unknown> {
    return this.#step({ signal: name })
  }

  /** Whether the terminal is back in canonical mode with echo. */
  async echoes(): Promise<boolean> {
    return (await this.#step({ state: true })).echoes === true
  }

  /** Waits until the program exits. Resolves to the exit code, or to the negative number of the signal. */
  async end(): Promise<{ code: number; shown: string }> {
    const { isOk, code = 0, shown = '' } = await this.#step({ end: true })
    if (!isOk) throw new Error(`Expected the program to end, got ${JSON.stringify(shown)}`)
    return { code, shown }
  }

  [Symbol.dispose](): void {
    this.#reader.close()
    this.#driver.kill('SIGKILL')
  }

  async #step(step: object): Promise<Answer> {
    this.#driver.stdin.write(`${JSON.stringify(step)}\n`)
    const { value, done } = await this.#answers.next()
    if (done === true) throw new Error('The terminal driver has exited')
    return JSON.parse(value as string) as Answer
  }
}
