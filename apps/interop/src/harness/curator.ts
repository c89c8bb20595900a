import { resolve } from 'node:path'
import { run, scratch, spawnOwned } from './servers.ts'

export const curatorJars = [
  'curator-recipes',
  'curator-framework',
  'curator-client',
  'curator-x-discovery',
  'jackson-databind',
].map((name) => `/usr/share/java/${name}.jar`)

/** What the jars of Debian need and do not name, and a log that says nothing. */
const others = ['zookeeper', 'jackson-core', 'jackson-annotations', 'slf4j-nop'].map(
  (name) => `/usr/share/java/${name}.jar`,
)
const source = resolve(import.meta.dirname, '../../java/Recipes.java')

let compiled: Promise<string> | undefined

/** The classes of our program on Curator; it is compiled once in a run of a test file. */
function classPath(): Promise<string> {
  compiled ??= compile()
  return compiled
}

async function compile(): Promise<string> {
  const folder = scratch('curator')
  const path = [...curatorJars, ...others].join(':')
  const { code, output } = await run('javac', ['-nowarn', '-d', folder, '-cp', path, source])
  if (code !== 0) throw new Error(`javac ended with ${code}:\n${output}`)
  return `${folder}:${path}`
}

/** A process that plays a part with Curator, by what it writes. */
export class Curator {
  readonly done: Promise<void>
  readonly #child: ReturnType<typeof spawnOwned>
  #output = ''
  #waiting: { readonly word: string; readonly resolve: () => void }[] = []

  private constructor(child: ReturnType<typeof spawnOwned>) {
    this.#child = child
    child.stdout.on('data', (chunk: Buffer) => this.#hear(chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => this.#hear(chunk.toString()))
    this.done = new Promise((settle, reject) => {
      child.once('close', (code) => {
        if (code === 0 && this.lines.includes('done')) settle()
        else reject(new Error(`Curator ended with ${code}:\n${this.#output.slice(-4000)}`))
      })
    })
    this.done.catch(() => {})
  }

  /** Starts it, and waits until it is connected. */
  static async start(address: string, part: string, rounds: number): Promise<Curator> {
    const flags = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', await classPath()]
    const curator = new Curator(spawnOwned('java', [...flags, 'Recipes', address, part, String(rounds)]))
    await curator.says('ready')
    return curator
  }

  get lines(): string[] {
    return this.#output.split('\n')
  }

  /** Lets it go on. */
  go(): void {
    this.#child.stdin.write('go\n')
  }

  /** Resolves when it has written a line; rejects when it ends without. */
  says(word: string): Promise<void> {
    const said = new Promise<void>((settle) => this.#waiting.push({ word, resolve: settle }))
    this.#hear('')
    return Promise.race([said, this.done])
  }

  #hear(text: string): void {
    this.#output += text
    for (const { word, resolve: settle } of this.#waiting) if (this.lines.includes(word)) settle()
  }
}
