import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect, it } from 'vitest'
import { exitCodeTable } from './exit-codes.ts'
import { setupStage, stage } from './testing/cli-fixture.ts'

const main = resolve(import.meta.dirname, '../dist/main.js')

setupStage()
beforeAll(() => stage.createNodes({ '/full': null, '/full/leaf': null }))

/** Starts the built program against the server of this file. */
function start(argv: readonly string[]) {
  const child = spawn(process.execPath, [main, ...argv], {
    env: { ...process.env, ZABRA_SERVER: stage.address },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const said = (text: string): Promise<void> =>
    new Promise((done, reject) => {
      const look = (): void => void (err.includes(text) && done())
      child.stderr.on('data', look)
      child.once('close', () => reject(new Error(`Expected "${text}", got its end and ${err}`)))
      look()
    })
  const ended = new Promise<{ code: number | null; out: string; err: string }>((done) =>
    child.once('close', (code) => done({ code, out, err })),
  )
  return { child, said, ended }
}

function run(argv: readonly string[], input = '') {
  const { child, ended } = start(argv)
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  return ended
}

describe.skipIf(!existsSync(main))('the built program (pnpm build first)', () => {
  it.each([
    [['--version'], 0],
    [['--help'], 0],
    [['ls', '/'], 0],
    [['lss', '/'], 2],
    [[], 2],
    [['get'], 2],
    [['get', '/none'], 3],
    [['create', '/zookeeper'], 4],
    [['set', '/zookeeper', 'x', '-v', '7'], 5],
    [['delete', '/full'], 6],
    [['ls', '/', '--server', '127.0.0.1:1'], 8],
    [['log', '/no/such/folder'], 2],
    [['status', '127.0.0.1:1'], 20],
  ] as const)('%j ends with %i', async (argv, code) => {
    const ran = await run(argv)
    expect({ code: ran.code, err: ran.err }).toMatchObject({ code })
    if (code !== 0) expect(ran.err).not.toContain('    at ')
  })

  it('--help shows every exit code', async () => {
    const { out } = await run(['--help'])
    for (const [code, meaning] of exitCodeTable) expect(out).toContain(`${code}  ${meaning}`)
  })

  it('runs commands from a pipe', async () => {
    expect(await run(['shell'], 'ls /\nget /none\n')).toMatchObject({ code: 3, out: '[full, zookeeper]\n' })
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('ends its session on %s', async (signal, code) => {
    const before = stage.server.stats().sessions
    const { child, said, ended } = start(['watch', '/'])
    await said('watching /')
    expect(stage.server.stats().sessions).toBe(before + 1)
    child.kill(signal)
    expect((await ended).code).toBe(code)
    expect(stage.server.stats().sessions).toBe(before)
  })

  it.skipIf(process.platform !== 'linux').each([
    ['a command', ['--version'], ''],
    [
      'an uncaught error',
      ['watch', '/'],
      `;process.on('newListener',(name)=>{if(name==='SIGINT')setImmediate(()=>{throw new Error('a defect')})})`,
    ],
  ])('ends after %s while a call for a file does not return', async (what, argv, more) => {
    const pipe = join(stage.folder, `pipe of ${what}`)
    spawnSync('mkfifo', [pipe])
    // Nothing writes to the pipe.
    const hangs = `import{open}from'node:fs';open(${JSON.stringify(pipe)},'r',()=>{})`
    const program = ['--import', `data:text/javascript,${hangs}${more}`, main, ...argv]
    const child = spawn(process.execPath, program, {
      env: { ...process.env, ZABRA_SERVER: stage.address },
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: 30_000,
      killSignal: 'SIGKILL',
    })
    const [err, [, by]] = await Promise.all([text(child.stderr!), once(child, 'close')])
    expect(by).toBe('SIGKILL')
    expect(err).toContain('zabra: Ended by a signal: a call for a file did not return.')
    expect(err.includes('Error: a defect')).toBe(more !== '')
  })

  it.skipIf(process.platform !== 'linux')(
    'ends while a call for a file does not return, however often a terminal interrupts it',
    async () => {
      const pipe = join(stage.folder, 'pipe of many signals')
      spawnSync('mkfifo', [pipe])
      const hangs = `import{open}from'node:fs';open(${JSON.stringify(pipe)},'r',()=>{})`
      const program = ['--import', `data:text/javascript,${hangs}`, main, 'watch', '/']
      const child = spawn(process.execPath, program, {
        env: { ...process.env, ZABRA_SERVER: stage.address },
        stdio: ['ignore', 'ignore', 'pipe'],
        timeout: 30_000,
        killSignal: 'SIGKILL',
        detached: true,
      })
      const closed = once(child, 'close')
      let err = ''
      let interrupting: NodeJS.Timeout | undefined
      child.stderr!.setEncoding('utf8').on('data', (said: string) => {
        err += said
        // Ctrl-C goes to all processes of the group.
        if (err.includes('watching /'))
          interrupting ??= setInterval(() => process.kill(-child.pid!, 'SIGINT'), 20)
      })
      await once(child, 'exit').finally(() => clearInterval(interrupting))
      await closed
      expect(err).toContain('zabra: Ended by a signal: a call for a file did not return.')
    },
  )

  it.skipIf(!existsSync('/dev/full')).each([
    ['at its end', ['--version']],
    // The second server is asked once it is said that the first one does not answer.
    ['while it works', ['doctor', '--admin', '127.0.0.1:1,127.0.0.1:2']],
    ['beside what it would say by its exit code', ['status', '127.0.0.1:1']],
    ['beside what it would say without an error', ['diff', '/full', '/zookeeper']],
    ['in the shell', ['shell', '-c', 'ls /', '-c', 'ls /full']],
  ])('fails when its output cannot be written %s', async (_, argv) => {
    const out = openSync('/dev/full', 'w')
    const child = spawn(process.execPath, [main, ...argv], {
      env: { ...process.env, ZABRA_SERVER: stage.address },
      stdio: ['ignore', out, 'pipe'],
    })
    closeSync(out)
    const [err, code] = await Promise.all([text(child.stderr!), once(child, 'close')])
    expect([code[0], err.match(/.*standard output.*/g)]).toEqual([
      14,
      ['zabra: Cannot write to standard output (ENOSPC). Make room, or print elsewhere.'],
    ])
  })

  it.skipIf(!existsSync('/dev/full'))('needs no room for a command that prints nothing', () => {
    const out = openSync('/dev/full', 'w')
    const env = { ...process.env, ZABRA_SERVER: '127.0.0.1:1' }
    const ran = spawnSync(process.execPath, [main, 'sync'], { stdio: ['ignore', out, 'pipe'], env })
    closeSync(out)
    expect(ran.status).toBe(8)
  })

  it.each([[['--version']], [['status', '127.0.0.1:1']], [['diff', '/full', '/zookeeper']]])(
    'says by its exit code alone that the reader of its output went away: %j',
    async (argv) => {
      const waiting = ['-c', 'read _; exec "$0" "$@"', process.execPath, main, ...argv]
      const child = spawn('sh', waiting, { env: { ...process.env, ZABRA_SERVER: stage.address } })
      child.stdout.destroy()
      await once(child.stdout, 'close')
      child.stdin.end('\n')
      expect((await once(child, 'exit'))[0]).toBe(141)
    },
  )

  it.skipIf(process.platform === 'win32')(
    'says why an export cannot be written to its end, and leaves no part of it',
    async () => {
      await stage.zk.create('/large', { data: new Uint8Array(9000).fill(0x78) })
      const file = join(stage.folder, 'large.jsonl')
      // A limit on the size of files stands for a full disk: four blocks of at most 1 KiB.
      const limited = 'trap "" XFSZ; ulimit -f 4; exec "$0" "$@"'
      const child = spawn('sh', ['-c', limited, process.execPath, main, 'export', '/large', '-o', file], {
        env: { ...process.env, ZABRA_SERVER: stage.address },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      let err = ''
      child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
      const code = await new Promise((done) => child.once('close', done))
      expect({ code, err: err.trimEnd().split('\n') }).toEqual({
        code: 1,
        err: [`zabra: Cannot write to ${file} (EFBIG). Make room, or name another file.`],
      })
      expect(existsSync(file)).toBe(false)
    },
  )

  it('repairs no log of a server that runs, wherever it is called from', async () => {
    const cwd = join(stage.folder, 'data', 'version-2')
    const [log] = readdirSync(cwd).filter((name) => name.startsWith('log.'))
    for (const target of [log!, '.', `../version-2/${log}`]) {
      const ran = spawnSync(process.execPath, [main, 'log', '--repair', target], { cwd })
      expect([target, ran.status, ran.stderr.toString()]).toEqual([
        target,
        expect.any(Number),
        expect.stringContaining('in use by'),
      ])
    }
  })

  it('closes its session when the reader of its output closes the pipe', async () => {
    const before = stage.server.stats().sessions
    const { child, said, ended } = start(['watch', '/pipe'])
    await said('watching /pipe')
    child.stdout.destroy()
    await stage.createNodes({ '/pipe': null })
    expect((await ended).code).toBe(141)
    expect(stage.server.stats().sessions).toBe(before)
  })
})
