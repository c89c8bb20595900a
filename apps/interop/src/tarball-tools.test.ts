import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { dirname, extname, join, resolve } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { packedApp, PACKING_MS } from './harness/packed-app.ts'
import { freePort } from './harness/ports.ts'
import { chromium, missingRequirements } from './harness/requirements.ts'
import { serverUnderTest, run, scratch, Server, spawnOwned } from './harness/servers.ts'

const root = resolve(import.meta.dirname, '../../..')
const bin = (name: string, path: string, from = import.meta.url): string =>
  join(dirname(createRequire(from).resolve(`${name}/package.json`)), path)

let app: string
beforeAll(async () => {
  const names = ['runtime', 'protocol', 'client', 'recipes', 'server', 'testing']
  app = await packedApp(names.map((name) => `packages/${name}`))
}, PACKING_MS)

const service = `import { createServer, type Server, type GivenServerSettings } from '@zabra/server'
import { createServer as createOn, defaults } from '@zabra/server/core'
import { loadSettings } from '@zabra/server/settings'
import { startServer } from '@zabra/testing'
import { connect, json, NoNodeError } from '@zabra/client'
import { revoke } from '@zabra/recipes/revocable'
import { LockTimeoutError, Mutex, type Handle, type LockHandle } from '@zabra/recipes'
import { nodePlatform } from '@zabra/runtime/node'
const settings: GivenServerSettings = { dataDir: process.argv[2], clientPort: 0 }
const server: Server = await createServer(settings)
await server.close()
const again = await createOn(defaults(settings), nodePlatform())
await again.close()
const member = await startServer()
const client = await connect({ servers: member.address })
const held: LockHandle = await new Mutex(client, '/lock', { data: 'first' }).acquire({ timeoutMs: 5000 })
const handle: Handle = held
const late: unknown = await new Mutex(client, '/lock').acquire({ timeoutMs: 50 }).catch((error: unknown) => error)
await handle.release()
await client.close()
await member.close()
const others: unknown[] = [NoNodeError, json<{ a: number }>(), revoke, loadSettings]
console.log(server.role, others.length, late instanceof LockTimeoutError && /"first"/.test(late.message))
`

describe('the packages from packed tarballs', () => {
  it.each(['node16', 'nodenext'])('make a service in a strict project with module %s', async (module) => {
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      rootDir: '.',
      outDir: `out-${module}`,
      target: 'es2022',
      lib: ['ES2023'],
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
      module,
    }
    writeFileSync(join(app, 'service.mts'), service)
    writeFileSync(join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['service.mts'] }))
    const compiled = await run(process.execPath, [bin('typescript', 'bin/tsc'), '-p', app])
    expect(compiled).toMatchObject({ output: '', code: 0 })
    const ran = await run(process.execPath, [join(app, `out-${module}/service.mjs`), scratch('service')])
    expect(ran).toMatchObject({ output: 'standalone 4 true\n', code: 0 })
  })
})

const jest = join(process.env['ZABRA_JEST'] ?? '', 'node_modules/jest/bin/jest.js')
const hasJest = existsSync(jest)
const inJest = hasJest ? describe : describe.skip
inJest(`the packages in Jest 29${hasJest ? '' : ' (skipped: ZABRA_JEST names no folder with Jest)'}`, () => {
  it('load in modules, and by import in CommonJS', async () => {
    const folder = join(app, 'jest')
    mkdirSync(folder, { recursive: true })
    const body = `const server = await startServer()
  const client = await connect({ servers: server.address })
  await expect(client.getData('/none')).rejects.toBeInstanceOf(NoNodeError)
  await client.close()
  await server.close()`
    writeFileSync(
      join(folder, 'module.test.mjs'),
      `import { connect, NoNodeError } from '@zabra/client'
import { startServer } from '@zabra/testing'
test('serves', async () => {
  ${body}
})
`,
    )
    writeFileSync(
      join(folder, 'common.test.cjs'),
      `test('serves', async () => {
  const { connect, NoNodeError } = await import('@zabra/client')
  const { startServer } = await import('@zabra/testing')
  ${body}
})
`,
    )
    writeFileSync(
      join(folder, 'jest.config.json'),
      '{ "testMatch": ["**/*.test.mjs", "**/*.test.cjs"], "testEnvironment": "node", "transform": {} }',
    )
    const ran = await run(process.execPath, [
      '--experimental-vm-modules',
      jest,
      '--config',
      join(folder, 'jest.config.json'),
    ])
    expect(ran.output).toContain('2 passed')
    expect(ran.code).toBe(0)
  })
})

const page = `import { connect, NoNodeError } from '@zabra/client'
import { Mutex } from '@zabra/recipes'
async function main() {
  const client = await connect({ servers: new URLSearchParams(location.search).get('servers') })
  const token = await new Mutex(client, '/locks/page').run(async (held) => held.token, { timeoutMs: 10_000 })
  const missing = await client.getData('/none').catch((error) => error instanceof NoNodeError)
  await client.close()
  return typeof token + ' ' + missing
}
main().catch(String).then((body) => fetch('/outcome', { method: 'POST', body }))
`

const absent = missingRequirements('chromium')
const inBrowser = absent === undefined ? describe : describe.skip
inBrowser(`the packages built with Vite${absent === undefined ? '' : ` (skipped: ${absent})`}`, () => {
  it('lock and read in Chromium', async () => {
    const web = join(app, 'web')
    mkdirSync(web, { recursive: true })
    writeFileSync(
      join(web, 'index.html'),
      '<!doctype html><meta charset="utf-8"><script type="module" src="./page.js"></script>',
    )
    writeFileSync(join(web, 'page.js'), page)
    const vite = bin('vite', 'bin/vite.js', createRequire(import.meta.url).resolve('vitest/package.json'))
    const built = await run(process.execPath, [vite, 'build', web, '--logLevel', 'warn'])
    expect(built.code, built.output).toBe(0)

    const webSocketPort = await freePort()
    await using _server = await Server.start({ kind: serverUnderTest, config: { webSocketPort } })
    let tell = (_outcome: string): void => {}
    const outcome = new Promise<string>((resolved) => (tell = resolved))
    const files = createServer((request, response) => {
      const path = new URL(request.url ?? '/', 'http://page').pathname
      if (request.method === 'POST') {
        request.setEncoding('utf8').once('data', (text: string) => tell(text))
        response.end()
      } else if (path === '/' || path.startsWith('/assets/')) {
        const type = extname(path) === '.js' ? 'text/javascript' : 'text/html'
        const file = join(web, 'dist', path === '/' ? 'index.html' : path)
        response.writeHead(200, { 'content-type': type }).end(readFileSync(file))
      } else response.writeHead(404).end()
    })
    files.listen(0, '127.0.0.1')
    await once(files, 'listening')
    const servers = encodeURIComponent(`ws://127.0.0.1:${webSocketPort}/zabra`)
    const browser = spawnOwned(chromium, [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--no-first-run',
      '--disable-background-networking',
      `--user-data-dir=${scratch('chromium-vite')}`,
      `http://127.0.0.1:${(files.address() as AddressInfo).port}/?servers=${servers}`,
    ])
    const gone = once(browser, 'exit').then(() => 'Chromium exited')
    try {
      expect(await Promise.race([outcome, gone])).toBe('bigint true')
    } finally {
      browser.kill('SIGTERM')
      await gone
      files.closeAllConnections()
      files.close()
    }
  })
})
