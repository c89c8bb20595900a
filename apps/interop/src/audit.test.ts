import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { Ensemble } from './ensemble/ensemble.ts'
import { bytes, openAcl } from './harness/bytes.ts'
import { createBody, multiBody } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { describeWith, python } from './harness/requirements.ts'
import { reference, run, scratch, type Kind, type Server } from './harness/servers.ts'
import { onBoth } from './harness/transcript.ts'

const script = resolve(import.meta.dirname, '../python/audit.py')
/** Where Apache ZooKeeper writes its log lines to; its Debian package has no binding of its logger. */
const loggerJars = ['slf4j-api', 'slf4j-log4j12', 'log4j-1.2'].map((name) => `/usr/share/java/${name}.jar`)

/** Returns the audit lines of both servers in one form: sessions by their order, and identities in the order of the alphabet. */
function comparable(text: string): string[] {
  const sessions: string[] = []
  return text
    .split('\n')
    .filter((line) => line.includes('operation=') && !line.includes('operation=login'))
    .map((line) =>
      line
        .replace(/^\S+ \S+ /, '')
        .replace(/session=(0x\w+)/, (_, id: string) => {
          if (!sessions.includes(id)) sessions.push(id)
          return `session=${sessions.indexOf(id)}`
        })
        .replace(/user=([^\t]+)/, (_, users: string) => `user=${users.split(',').toSorted().join()}`),
    )
}

/** Returns JVM flags with which Apache ZooKeeper writes its audit log to a file; its name may refer to `${audit.log}`. */
function auditFlags(folder: string, file: string): string[] {
  const log4j = join(folder, 'log4j.properties')
  const lines = [
    'log4j.rootLogger=OFF',
    'log4j.logger.org.apache.zookeeper.audit.Slf4jAuditLogger=INFO, FILE',
    'log4j.appender.FILE=org.apache.log4j.FileAppender',
    `log4j.appender.FILE.File=${file}`,
    'log4j.appender.FILE.layout=org.apache.log4j.PatternLayout',
    'log4j.appender.FILE.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n',
  ]
  writeFileSync(log4j, lines.join('\n'))
  return [
    `-Xbootclasspath/a:${loggerJars.join(':')}`,
    `-Dlog4j.configuration=file:${log4j}`,
    '-Dzookeeper.audit.enable=true',
  ]
}

describeWith(['apache', 'kazoo'], 'the audit log', () => {
  it('has the lines of Apache ZooKeeper for the same requests', async () => {
    const folder = scratch('audit')
    const scenario = async (server: Server): Promise<string> => {
      const { code, stderr } = await run(python, [script, server.address], { timeoutMs: 90_000 })
      expect({ code, stderr }).toMatchObject({ code: 0 })
      await server.stop()
      return readFileSync(join(folder, `${server.kind}.log`), 'utf8')
    }
    const own = (kind: string): Record<string, string> =>
      kind === 'zabra' ? { 'audit.file': join(folder, 'zabra.log') } : {}
    const { apache, zabra } = await onBoth(scenario, {}, auditFlags(folder, `${folder}/apache-3.8.log`), own)
    const [expected, got] = [apache, zabra].map((log) => comparable(log.join('\n')))
    expect(got).toEqual(expected)
    expect(expected!.length).toBeGreaterThan(20)
  })
})

/** Sends writes to one member, below a node of its own: most succeed, and one of each kind fails. Ends the session. */
async function writeThrough(ensemble: Ensemble, id: number): Promise<void> {
  const client = await ensemble.connect(id)
  const root = `/m${id}`
  const set = (path: string, version = -1) => bytes().str(path).buffer('x').int(version).done()
  const setAcl = (path: string) => bytes().str(path).acl(openAcl).int(-1).done()
  const remove = (path: string) => bytes().str(path).int(-1).done()
  const multi = (version: number) =>
    multiBody([
      [op.create, createBody(`${root}/multi`)],
      [op.setData, set(`${root}/multi`)],
      [op.setData, set(root, version)],
      [op.delete, remove(`${root}/multi`)],
    ])
  const requests: [type: number, body: Uint8Array][] = [
    [op.create, createBody(root)],
    [op.create, createBody(root)],
    [op.create2, createBody(`${root}/two`)],
    [op.create, createBody(`${root}/e`, '', 1)],
    [op.create, createBody(`${root}/s-`, '', 2)],
    [op.create2, createBody(`${root}/es-`, '', 3)],
    [op.createContainer, createBody(`${root}/c`, '', 4)],
    [op.create, createBody(`${root}/none/es-`, '', 3)],
    [op.setData, set(root)],
    [op.setData, set(root, 77)],
    [op.setACL, setAcl(root)],
    [op.setACL, setAcl(`${root}/none`)],
    [op.delete, remove(`${root}/two`)],
    [op.delete, remove(`${root}/two`)],
    [op.multi, multi(-1)],
    [op.multi, multi(77)],
  ]
  // One after another, and then many at once.
  for (const [type, body] of requests) await client.request(type, body)
  await client.addAuth('digest', 'bob:secret')
  const [deleted, changed] = [remove(`${root}/none`), set(root)]
  await Promise.all(
    Array.from({ length: 60 }, (_, i) =>
      i % 3 === 0 ? client.request(op.delete, deleted) : client.request(op.setData, changed),
    ),
  )
  await client.close()
}

const DELETION = 'operation=ephemeralZNodeDeletionOnSessionCloseOrExpire'

describeWith(['apache'], 'the audit log of an ensemble', () => {
  it.each<readonly Kind[]>([
    ['zabra', reference, reference, 'zabra'],
    [reference, 'zabra', 'zabra', reference],
  ])(
    'of %s and %s, the leader %s and the observer %s has each write at the server of its client, as Apache ZooKeeper has it',
    async (...kinds) => {
      const folder = scratch('audit-ensemble')
      const fileOf = (id: number): string => join(folder, `${id}.log`)
      const ensemble = await Ensemble.plan({
        kinds,
        observers: [4],
        javaFlags: auditFlags(folder, '${audit.log}'),
        envOf: (id) => ({ JAVA_TOOL_OPTIONS: `-Daudit.log=${fileOf(id)}` }),
        configOf: (id, kind) => (kind === 'zabra' ? { 'audit.file': fileOf(id) } : {}),
      })
      // In this order, so that 3 leads.
      await ensemble.start(2, 3)
      await ensemble.start(1, 4)
      expect(await ensemble.leader()).toBe(3)
      for (const id of ensemble.ids) await writeThrough(ensemble, id)
      await ensemble.waitUntilSynced()
      await ensemble.stop(...ensemble.ids)
      const logs = ensemble.ids.map((id) => readFileSync(fileOf(id), 'utf8').split('\n'))
      const ownOf = (id: number): string[] => logs[id - 1]!.filter((line) => !line.includes(DELETION))
      const lines = ensemble.ids.map((id) => comparable(ownOf(id).join('\n').replaceAll(`/m${id}`, '/m')))
      const apache = kinds.indexOf(reference)
      for (const got of lines) expect(got).toEqual(lines[apache])
      expect(lines[apache]!.join('\n')).not.toMatch(/znode=\/m\d/)
      expect(lines[apache]!.length).toBeGreaterThan(70)
      // What goes with a session is recorded by each member.
      const deletions = logs.map((log) => log.filter((line) => line.includes(DELETION)))
      const expected = deletions[apache]!.map((line) => line.replace(/^\S+ \S+ /, ''))
      expect(expected).toHaveLength(2 * kinds.length)
      for (const got of deletions) expect(got.map((line) => line.replace(/^\S+ \S+ /, ''))).toEqual(expected)
    },
  )
})
