import { spawnOwned } from './servers.ts'

/**
 * A client program that takes part in a scenario with clients of the test. It prints `ready` when it is connected and `done`
 * at its end, and waits for a line on its standard input before each step.
 */
export class ScriptedPeer {
  /** Resolves when the program exits with 0 after `done`; rejects with its output otherwise. */
  readonly done: Promise<void>
  readonly #child: ReturnType<typeof spawnOwned>
  #output = ''
  #pending: { readonly line: string; readonly resolve: () => void }[] = []

  private constructor(program: string, args: readonly string[]) {
    this.#child = spawnOwned(program, args)
    this.#child.stdout.on('data', (chunk: Buffer) => this.#append(chunk.toString()))
    this.#child.stderr.on('data', (chunk: Buffer) => this.#append(chunk.toString()))
    this.done = new Promise((resolve, reject) => {
      this.#child.once('close', (code) => {
        if (code === 0 && this.lines.includes('done')) resolve()
        else reject(new Error(`${program} exited with ${code}:\n${this.#output.slice(-4000)}`))
      })
    })
    this.done.catch(() => {})
  }

  /** Starts a program. Resolves when it is connected. */
  static async start(program: string, args: readonly string[]): Promise<ScriptedPeer> {
    const peer = new ScriptedPeer(program, args)
    await peer.waitForLine('ready')
    return peer
  }

  /** The lines that the program has printed. */
  get lines(): string[] {
    return this.#output.split('\n')
  }

  /** Lets the program take its next step. */
  proceed(): void {
    this.#child.stdin.write('go\n')
  }

  /** Resolves when the program has printed a line; rejects when it exits first. */
  waitForLine(line: string): Promise<void> {
    const printed = new Promise<void>((resolve) => this.#pending.push({ line, resolve }))
    this.#append('')
    return Promise.race([printed, this.done])
  }

  #append(text: string): void {
    this.#output += text
    for (const { line, resolve } of this.#pending) if (this.lines.includes(line)) resolve()
  }
}
