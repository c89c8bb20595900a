import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { packedApp, PACKING_MS } from './harness/packed-app.ts'
import { freePort } from './harness/ports.ts'
import { describeWith } from './harness/requirements.ts'
import { pauseBetweenPolls, spawnOwned } from './harness/servers.ts'

const page = readFileSync(new URL('../../../docs/tutorial.md', import.meta.url), 'utf8')
const programs = ['packages/runtime', 'packages/protocol', 'packages/client', 'packages/recipes']
const packages = [...programs, 'apps/cli', 'apps/server']
const root = resolve(import.meta.dirname, '../../..')

interface Block {
  /** The paragraph before the block. */
  readonly before: string
  readonly language: string
  readonly code: string
}

/** What the page has the reader type and save, and what it shows, in order. */
const blocks: Block[] = [...page.matchAll(/([^\n]*)\n\n```(\w+)\n([^]*?)```/g)].map(
  ([, before = '', language = '', code = '']) => ({ before, language, code }),
)

/** The page says that numbers and the order of names differ. A line that is 0 has to be that. */
const normalized = (line: string): string =>
  line === '0'
    ? line
    : line
        .replaceAll(/\S*\d\S*/g, '#')
        .replaceAll(/\b(ada|ben|eve)\b/g, 'name')
        .trim()
        .replaceAll(/\s+/g, ' ')

/** Returns the lines of `expected` that `output` lacks, whatever their order. */
function missing(expected: string, output: string): string[] {
  const left = output.split('\n').map(normalized)
  return expected
    .trim()
    .split('\n')
    .filter((line) => {
      const index = left.indexOf(normalized(line))
      if (index !== -1) left.splice(index, 1)
      return index === -1
    })
}

/** A shell into which commands are typed one after the other. */
class Shell {
  readonly #process = spawnOwned('bash', ['--norc', '--noprofile'])
  #output = ''
  /** What commands have printed on standard error. */
  errors = ''
  #news: () => void = () => {}

  constructor() {
    this.#process.stdout.on('data', (chunk: Buffer) => {
      this.#output += chunk.toString()
      this.#news()
    })
    this.#process.stderr.on('data', (chunk: Buffer) => (this.errors += chunk.toString()))
    this.#process.once('exit', () => this.#news())
    // What it starts in the background ends with it, even if it is killed.
    if (existsSync('/usr/bin/setpriv'))
      for (const name of ['node', 'zabra-server'])
        this.#process.stdin.write(`${name}() { exec setpriv --pdeathsig SIGKILL ${name} "$@"; }\n`)
  }

  /** Runs commands; resolves to what they print on standard output. */
  async type(commands: string): Promise<string> {
    this.#output = ''
    const end = '\n-- end of output --\n'
    this.#process.stdin.write(`${commands}\nprintf '${end.replaceAll('\n', '\\n')}'\n`)
    while (!this.#output.endsWith(end)) {
      if (this.#process.exitCode !== null) throw new Error(`The shell has ended after ${commands}`)
      await new Promise<void>((done) => (this.#news = done))
    }
    return this.#output.slice(0, -end.length)
  }

  end(): void {
    this.#process.stdin.end('kill -9 $(jobs -p)\n')
  }
}

/** Resolves once a service in a folder has taken another order. */
async function ordersGoOn(folder: string): Promise<void> {
  const count = (): number => readFileSync(join(folder, 'orders.txt'), 'utf8').split('\n').length
  const [before, began] = [count(), Date.now()]
  while (count() === before) {
    expect(Date.now() - began, 'the service takes orders after a server was killed').toBeLessThan(60_000)
    await pauseBetweenPolls(began)
  }
}

/** Returns the ports, without their last digit, of which those that end in 1, 2 and 3 are free. */
async function freeTens(count: number): Promise<number[]> {
  const tens: number[] = []
  const ports: number[] = []
  while (tens.length < count) {
    const port = await freePort()
    ports.push(port)
    if (port % 10 === 3 && ports.includes(port - 1) && ports.includes(port - 2)) tens.push((port - 3) / 10)
  }
  return tens
}

describeWith(['curl'], 'the tutorial', () => {
  let folder: string
  let shell: Shell | undefined
  let onFreePorts: (text: string) => string

  beforeAll(async () => {
    folder = await packedApp(packages)
    const tens = await freeTens(4)
    const page = ['218', '288', '388', '808']
    onFreePorts = (text) =>
      text.replaceAll(/\b(218|288|388|808)(?=[123]\b|\$id|\$leader)/g, (digits) =>
        String(tens[page.indexOf(digits)]),
      )
    shell = new Shell()
  }, PACKING_MS)

  afterAll(() => shell?.end())

  it('installs packages that exist', () => {
    const names = packages.map(
      (path) => (JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')) as { name: string }).name,
    )
    const [, installed = ''] = /^npm install (.*)$/m.exec(page) ?? []
    expect(installed.split(' ').length).toBeGreaterThan(3)
    expect(installed.split(' ').filter((name) => !names.includes(name))).toEqual([])
  })

  it('shows what happens, from the installation to the end', { timeout: 300_000 }, async () => {
    const typist = shell!
    let leader = ''
    for (const [index, { before, language, code }] of blocks.entries()) {
      if (language === 'js') {
        const [, name = ''] = /`(\w+\.mjs)`/.exec(before) ?? []
        writeFileSync(join(folder, name), onFreePorts(code))
        continue
      }
      if (language !== 'sh') continue
      const commands = onFreePorts(code)
        .replace(/^mkdir shop && cd shop\nnpm install .*$/m, `cd ${folder}`)
        .replace(/^leader=\d$/m, `leader=${leader}`)
      const next = blocks[index + 1]
      const expected = next?.language === 'text' ? next.code : ''
      const began = Date.now()
      let output = await typist.type(commands)
      // The page says to look again.
      while (missing(expected, output).length > 0 && Date.now() - began < 60_000) {
        await pauseBetweenPolls(began)
        output = await typist.type(commands)
      }
      expect(
        missing(expected, output),
        `${commands} prints ${output}, and all before: ${typist.errors}`,
      ).toEqual([])
      leader = /(\d)\s+leader/.exec(output)?.[1] ?? leader
      // A page that shows the last order cannot show that later ones come.
      if (code.startsWith('tail -n 1 orders.txt')) await ordersGoOn(folder)
    }
    // The page says that all has stopped: the shell waits until its processes have ended.
    await typist.type('wait')
  })
})
