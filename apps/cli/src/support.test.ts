import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { readLastFile } from './files/tar-file.ts'
import { setupStage, stage } from './testing/cli-fixture.ts'

setupStage({ adminPort: 0, adminRoleAdmin: ['ip:127.0.0.1'], adminRoleView: ['ip:127.0.0.1'] })

const run = (...argv: string[]) => stage.run(argv)
const own = (): string => `0x${stage.zk.session.id.toString(16)}`

describe('zabra watches', () => {
  it('prints session, kinds and path of each watch, filtered as asked', async () => {
    await stage.zk.create('/watched')
    const watchers = await Promise.all([
      stage.zk.watch('/watched', { mode: 'persistent' }),
      stage.zk.watch('/below', { mode: 'persistentRecursive' }),
    ])
    const lines = [`${own()}  persistentRecursive  /below`, `${own()}  persistent  /watched`]
    expect(await run('watches')).toMatchObject({ code: 0, out: `${lines.join('\n')}\n`, err: '' })
    expect((await run('watches', '--path', '/watched', '--session', own())).out).toBe(`${lines[1]}\n`)
    const { out } = await run('watches', '--kind', 'persistentRecursive', '--json')
    expect(JSON.parse(out)).toEqual({ session: own(), path: '/below', kinds: ['persistentRecursive'] })
    await Promise.all(watchers.map((watcher) => watcher.close()))
    expect(await run('watches')).toMatchObject({ code: 0, out: '', err: expect.stringContaining('none') })
  })

  it('prints all of more watches than one page has', async () => {
    await stage.zk.create('/many')
    const paths = Array.from({ length: 1500 }, (_, i) => `/many/${String(i).padStart(4, '0')}`)
    const watchers = await Promise.all(paths.map((path) => stage.zk.watch(path, { mode: 'persistent' })))
    const { out } = await run('watches')
    expect(out.trimEnd().split('\n')).toEqual(paths.map((path) => `${own()}  persistent  ${path}`))
    await Promise.all(watchers.map((watcher) => watcher.close()))
  }, 60_000)

  it('refuses a session and a kind that are none', async () => {
    expect((await run('watches', '--session', 'x')).code).toBe(2)
    expect((await run('watches', '--kind', 'x')).err).toContain('persistentRecursive')
  })
})

describe('zabra support-bundle', () => {
  it('writes a file for its owner alone, which tar unpacks, and prints its manifest', async () => {
    const file = join(stage.folder, 'bundle.tar.gz')
    const { code, out, err } = await run('support-bundle', '-o', file)
    expect({ code, err }).toEqual({ code: 0, err: `zabra: the bundle is in ${file}\n` })
    expect(out).toMatch(/^Support bundle zabra-\d+-\w+ of Zabra /)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    execFileSync('tar', ['-xzf', file, '-C', stage.folder])
    const folder = readdirSync(stage.folder).find((name) => /^zabra-\d+-/.test(name))!
    const read = (name: string): string => readFileSync(join(stage.folder, folder, name), 'utf8')
    expect(read('MANIFEST.txt')).toBe(out)
    expect(JSON.parse(read('commands/monitor.json'))).toMatchObject({ server_state: 'standalone' })
    expect(await run('support-bundle', '-o', file)).toMatchObject({
      code: 2,
      err: expect.stringContaining('exists already'),
    })
    // The server was not asked, so it makes no other bundle.
    expect(await run('support-bundle', '-o', join(stage.folder, 'next.tar.gz'))).toMatchObject({ code: 0 })
  }, 60_000)

  it('leaves no file where there is no bundle', async () => {
    const file = join(stage.folder, 'none.tar.gz')
    const { code } = await run('support-bundle', '-o', file, '--admin', 'http://127.0.0.1:1')
    expect([code, existsSync(file)]).toEqual([8, false])
  })

  it('leaves no file of a server that sends more than a bundle has', async () => {
    const more = new Uint8Array(1 << 20)
    const stub = createServer((_, response) => {
      const next = (): void => void (response.destroyed || response.write(more, () => setImmediate(next)))
      next()
    })
    await new Promise<void>((resolve) => stub.listen(0, '127.0.0.1', resolve))
    const file = join(stage.folder, 'endless.tar.gz')
    const admin = `http://127.0.0.1:${(stub.address() as AddressInfo).port}`
    const { code, err } = await run('support-bundle', '-o', file, '--admin', admin)
    stub.close()
    expect([code, err]).toEqual([9, expect.stringContaining('The answer of the server is too long')])
    expect(existsSync(file)).toBe(false)
  }, 60_000)

  it('leaves no file of a bundle that is not complete', async () => {
    const stub = createServer((_, response) => void response.end('no archive'))
    await new Promise<void>((resolve) => stub.listen(0, '127.0.0.1', resolve))
    const file = join(stage.folder, 'cut-short.tar.gz')
    const admin = `http://127.0.0.1:${(stub.address() as AddressInfo).port}`
    const { code, err } = await run('support-bundle', '-o', file, '--admin', admin)
    stub.close()
    expect([code, err]).toEqual([9, expect.stringContaining('has sent no complete bundle')])
    expect(existsSync(file)).toBe(false)
  })

  it('reads no manifest that is far longer than one', async () => {
    const bomb = join(stage.folder, 'bomb.tar.gz')
    const read = (size: number): Promise<string | undefined> => {
      const header = Buffer.alloc(512)
      header.write('zabra-1/MANIFEST.txt')
      header.write(size.toString(8), 124)
      writeFileSync(bomb, gzipSync(Buffer.concat([header, Buffer.alloc(size, 'a'), Buffer.alloc(1024)])))
      return readLastFile(bomb, 'MANIFEST.txt')
    }
    expect((await read(1 << 20))?.length).toBe(1 << 20)
    expect(await read(2 << 20)).toBeUndefined()
  })

  it('takes no archive for complete whose end is missing', async () => {
    const whole = readFileSync(join(stage.folder, 'bundle.tar.gz'))
    const cut = join(stage.folder, 'cut.tar.gz')
    for (const length of [0, 1000, whole.length - 20]) {
      writeFileSync(cut, whole.subarray(0, length))
      expect(await readLastFile(cut, 'MANIFEST.txt').catch(() => undefined)).toBeUndefined()
    }
    expect(await readLastFile(join(stage.folder, 'bundle.tar.gz'), 'self.json')).toBeUndefined()
  })
})
