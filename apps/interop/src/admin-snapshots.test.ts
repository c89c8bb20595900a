import { expect, it } from 'vitest'
import { adminSettings, apache, authorization, SESSION_MS } from './harness/admin-settings.ts'
import { Client } from './harness/client.ts'
import { dumpTree } from './harness/dump.ts'
import { freePort } from './harness/ports.ts'
import { describeWith, python } from './harness/requirements.ts'
import { run, Server, type Kind } from './harness/servers.ts'

const settings = (kind: Kind, port: number) =>
  adminSettings(kind, port, {
    'admin.restore.enabled': 'true',
    'admin.role.admin': 'ip:127.0.0.1',
    'audit.enable': 'true',
  })

async function start(kind: Kind): Promise<{ server: Server; url: string }> {
  const port = await freePort()
  const server = await Server.start({ kind, config: settings(kind, port) })
  return { server, url: `http://127.0.0.1:${port}/commands` }
}

/** Returns the tree of a server, without what the server keeps for itself. */
async function treeOf(server: Server): Promise<Record<string, string>> {
  const client = await Client.connect(server.port, { timeoutMs: SESSION_MS })
  const tree = await dumpTree(client)
  await client.close()
  return Object.fromEntries(Object.entries(tree).filter(([path]) => !path.startsWith('/zookeeper')))
}

describeWith(['newestApache'], 'a snapshot over HTTP', () => {
  it.each<readonly [from: Kind, to: Kind]>([
    ['zabra', apache],
    [apache, 'zabra'],
  ])(
    'of %s is restored over HTTP by %s, which has the same tree then',
    async (from, to) => {
      const [source, target] = await Promise.all([start(from), start(to)])
      await using _source = source.server
      await using _target = target.server
      const client = await Client.connect(source.server.port, { timeoutMs: SESSION_MS })
      for (const path of ['/app', '/app/a', '/app/ä']) await client.create(path, 'data')
      for (let round = 0; round < 20; round++) await client.set('/app', `round ${round}`)
      await client.create('/app/s-', '', 2)
      await client.close()
      const expected = await treeOf(source.server)
      const other = await Client.connect(target.server.port, { timeoutMs: SESSION_MS })
      await other.create('/other')
      const taken = await fetch(`${source.url}/snapshot?streaming=true`, { headers: { authorization } })
      expect(taken.status).toBe(200)
      const body = new Uint8Array(await taken.arrayBuffer())
      const restored = await fetch(`${target.url}/restore`, {
        method: 'POST',
        body,
        headers: { authorization, 'content-type': 'application/octet-stream' },
      })
      expect([restored.status, await restored.text()]).toEqual([
        200,
        expect.stringContaining('"error" : null') as string,
      ])
      expect(await treeOf(target.server)).toEqual(expected)
      other.drop()
    },
    300_000,
  )
})

const READ = `
import json, sys
for line in sys.stdin:
    name, body = line.split(' ', 1)
    answer = json.loads(json.loads(body))
    assert answer['command'] == name, (name, answer)
    if name == 'connections':
        print(*[one['session_id'] for one in answer['connections']])
`

describeWith(['python'], 'the answers of the HTTP port', () => {
  it('to all commands are JSON for Python, with ids as exact integers', async () => {
    const { server, url } = await start('zabra')
    await using _server = server
    const client = await Client.connect(server.port, { timeoutMs: SESSION_MS })
    const index = await (await fetch(url)).text()
    const names = [...index.matchAll(/>(\w+)<\/a>/g)].map(([, name]) => name!)
    expect(names).toHaveLength(29)
    const lines: string[] = []
    for (const name of names) {
      const isPost = name === 'restore' || name === 'shed_connections'
      const query = { snapshot: '?streaming=false', set_trace_mask: '?traceMask=306' }[name] ?? ''
      const response = await fetch(`${url}/${name}${query}`, { method: isPost ? 'POST' : 'GET' })
      lines.push(`${name} ${JSON.stringify(await response.text())}\n`)
    }
    const { code, stdout, stderr } = await run(python, ['-c', READ], { input: lines.join('') })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.trim().split(' ')).toContain(String(client.session.id))
    await client.close()
  })
})
