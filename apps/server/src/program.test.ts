import { spawn, spawnSync } from 'node:child_process'
import {
  closeSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/** What is built, in a folder where nothing else can be found. */
let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'zabra-program-'))
  for (const name of ['package.json', 'dist'])
    cpSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), join(folder, name), { recursive: true })
  const lines = [`dataDir=${folder}/data`, 'clientPort=0', 'clientPortAddress=127.0.0.1', 'webSocketPort=0']
  writeFileSync(join(folder, 'zoo.cfg'), lines.join('\n'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const built = () =>
  readdirSync(join(folder, 'dist'))
    .filter((name) => name.endsWith('.js'))
    .map((name) => readFileSync(join(folder, 'dist', name), 'utf8'))

const forPeople = 'data:text/javascript,process.stdout.isTTY=true'

/** Starts the program, sends it a signal when it says that it serves, and gives all that it says. */
function serveOnce(
  nodeFlags: readonly string[],
  { signal = 'SIGTERM' }: { readonly signal?: NodeJS.Signals } = {},
): Promise<{ code: number | null; by: NodeJS.Signals | null; said: string }> {
  const program = [join(folder, 'dist/main.js'), join(folder, 'zoo.cfg')]
  const child = spawn(process.execPath, [...nodeFlags, ...program], {
    timeout: 30_000,
    killSignal: 'SIGKILL',
  })
  let said = ''
  return new Promise((resolve, reject) => {
    const collect = (chunk: Buffer): void => {
      const served = said.includes('Serving on')
      said += chunk.toString()
      if (!served && said.includes('Serving on')) child.kill(signal)
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    child.once('error', reject).once('close', (code, by) => resolve({ code, by, said }))
  })
}

describe('the built program', () => {
  test.each([
    ['JSON', [], /"msg":"Stopped; everything is on disk"/],
    ['lines for people', ['--import', forPeople], /INFO.*Stopped; everything is on disk/],
  ])('serves without node_modules, and logs %s', async (_format, nodeFlags, last) => {
    const { code, said } = await serveOnce(nodeFlags)
    expect(said).toMatch(last)
    expect(code).toBe(0)
  })

  test.skipIf(process.platform === 'win32').each(['SIGTERM', 'SIGHUP', 'SIGUSR2'])(
    'exits with the code 0 where a %s comes once it has stopped',
    async (name) => {
      const late = `process.on('removeListener',(name)=>{if(name==='${name}')setImmediate(()=>process.kill(process.pid,name))})`
      const { code, by } = await serveOnce(['--import', `data:text/javascript,${late}`])
      expect([code, by]).toEqual([0, null])
    },
  )

  test('exits with the code of its verdict where the reader of its output has ended', async () => {
    const child = spawn(process.execPath, [join(folder, 'dist/main.js'), '--help'], { timeout: 30_000 })
    child.stdout.destroy()
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    const code = await new Promise((resolve) => child.once('close', resolve))
    expect([code, errors]).toEqual([0, ''])
  })

  test.skipIf(!existsSync('/dev/full')).each(['--check-config', '--help', '--version'])(
    'fails where what %s prints cannot be written',
    (flag) => {
      const out = openSync('/dev/full', 'w')
      const program = [join(folder, 'dist/main.js'), flag, join(folder, 'zoo.cfg')]
      const ran = spawnSync(process.execPath, program, { stdio: ['ignore', out, 'pipe'], timeout: 30_000 })
      closeSync(out)
      expect([ran.status, ran.stderr.toString()]).toEqual([
        1,
        'zabra-server: Cannot write to standard output (ENOSPC). Make room, or print elsewhere.\n',
      ])
    },
  )

  test.skipIf(process.platform !== 'linux').each([
    ['a stop', [], 'SIGTERM'],
    ['a second signal', ['stop.drainMs=1h'], 'SIGKILL'],
  ])('ends after %s while a call for a file does not return', async (what, lines, expected) => {
    const configuration = join(folder, `${what}.cfg`)
    writeFileSync(configuration, [readFileSync(join(folder, 'zoo.cfg'), 'utf8'), ...lines].join('\n'))
    const pipe = join(folder, `pipe of ${what}`)
    spawnSync('mkfifo', [pipe])
    // Nothing writes to the pipe.
    const hang = `data:text/javascript,import{open}from'node:fs';open(${JSON.stringify(pipe)},'r',()=>{})`
    const program = ['--import', hang, join(folder, 'dist/main.js'), configuration]
    const child = spawn(process.execPath, program, { timeout: 30_000 })
    let said = ''
    let again: NodeJS.Timeout | undefined
    const collect = (chunk: Buffer): void => {
      const served = said.includes('Serving on')
      said += chunk.toString()
      if (served || !said.includes('Serving on')) return
      child.kill('SIGTERM')
      // One that follows the first at once is taken for an echo.
      if (what === 'a second signal') again = setInterval(() => child.kill('SIGTERM'), 100)
    }
    child.stdout.on('data', collect)
    child.stderr.on('data', collect)
    const signal = await new Promise((resolve) => child.once('close', (_code, by) => resolve(by)))
    clearInterval(again)
    expect([signal, said]).toEqual([expected, expect.stringContaining('a call for a file did not return')])
  })

  test.skipIf(process.platform !== 'linux')(
    'ends with its code after an uncaught error, by a signal while a call for a file does not return',
    async () => {
      const pipe = join(folder, 'pipe of an error')
      spawnSync('mkfifo', [pipe])
      const fails = `process.on('SIGWINCH',()=>{throw new Error('a defect')})`
      const hangs = `import{open}from'node:fs';open(${JSON.stringify(pipe)},'r',()=>{})`
      const run = (script: string) =>
        serveOnce(['--import', `data:text/javascript,${script}`], { signal: 'SIGWINCH' })
      const ended = await run(fails)
      expect(ended).toMatchObject({
        code: 1,
        said: expect.stringMatching(/zabra-server stopped: a defect\n$/) as string,
      })
      const killed = await run(`${hangs};${fails}`)
      expect(killed.by).toBe('SIGKILL')
      expect(killed.said).toContain('zabra-server stopped: a defect\n')
      expect(killed.said).toContain('a call for a file did not return')
    },
  )

  test.skipIf(process.platform !== 'linux')(
    'ends a start on a signal while a call for a file does not return',
    async () => {
      const pipe = join(folder, 'pipe of a start')
      spawnSync('mkfifo', [pipe])
      const hangs = `import fs from'node:fs';import files from'node:fs/promises';import{syncBuiltinESMExports}from'node:module';fs.open(${JSON.stringify(pipe)},'r',()=>{});files.readdir=()=>new Promise(()=>{});syncBuiltinESMExports()`
      const stops = `process.on('newListener',(name)=>{if(name==='SIGTERM')setImmediate(()=>process.kill(process.pid,name))})`
      const { by, said } = await serveOnce(['--import', `data:text/javascript,${hangs};${stops}`])
      expect([by, said]).toEqual(['SIGTERM', expect.stringContaining('Stopped before the data were read')])
    },
  )

  test('imports only its own files and modules of Node', () => {
    const imports = built().flatMap((text) => [
      ...text.matchAll(/^(?:import|export) [^"';]*?from ["']([^"']+)["']|\bimport\("([^"]+)"\)/gm),
    ])
    const foreign = imports
      .map(([, name, later]) => name ?? later ?? '')
      .filter((name) => !name.startsWith('./') && !isBuiltin(name))
    expect(imports.length).toBeGreaterThan(10)
    expect(foreign).toEqual([])
  })

  test('contains only the small build of zod: the full one is a third of what a start compiles', () => {
    const text = built().join('\n')
    expect(text).toContain('/zod/v4/mini/')
    expect(text).not.toContain('/zod/v4/classic/')
  })

  test('contains the license of every bundled package', () => {
    const inside = built().flatMap((text) => [
      ...text.matchAll(/^\s*\/\/ .*node_modules\/((?:@[^/\s]+\/)?[^/\s]+)\//gm),
    ])
    const names = new Set(inside.map(([, name]) => name))
    const texts = readFileSync(join(folder, 'dist/LICENSES.txt'), 'utf8').split(/^-{80}$/m)
    const licensed = new Map(
      texts.map((text) => [/^(\S+) \S+ \(/.exec(text.trim())?.[1], text.trim().length]),
    )
    expect([...names]).toEqual(expect.arrayContaining(['commander', 'pino', 'pino-pretty', 'ws']))
    expect([...names].filter((name) => (licensed.get(name) ?? 0) < 500)).toEqual([])
  })
})
