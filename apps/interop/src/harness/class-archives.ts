import { existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from './client.ts'
import { freePort } from './ports.ts'
import { missingRequirements } from './requirements.ts'
import { apacheClassPath, classArchive, CLASS_ARCHIVES, newestClassPath, scratch, Server } from './servers.ts'

/**
 * Makes archives of the classes of Apache ZooKeeper, with which a JVM starts in two thirds of the processor time. It does so beside the
 * first tests, whose JVMs start without them, and only for all suites: a run of one file would take longer. Returns the function that
 * removes them.
 */
export default function makeArchives(): (() => Promise<void>) | undefined {
  if (process.env['CI'] === undefined || missingRequirements('apache') !== undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'zabra-interop-classes-'))
  // Workers inherit it.
  process.env[CLASS_ARCHIVES] = folder
  const servers: Server[] = []
  const making = makeAll(servers)
  return async () => {
    await Promise.all(servers.map((server) => server.kill()))
    await making
    rmSync(folder, { recursive: true, force: true })
  }
}

async function makeAll(servers: Server[]): Promise<void> {
  try {
    await make('apache-3.8', apacheClassPath, servers)
    if (existsSync(process.env['ZABRA_APACHE_39'] ?? '')) await make('apache-3.9', newestClassPath(), servers)
  } catch (error) {
    console.warn('JVMs start without an archive of classes:', error)
  }
}

/** Runs one voting member, which loads the classes that most tests need, and archives them when it exits. */
async function make(kind: 'apache-3.8' | 'apache-3.9', path: string, servers: Server[]): Promise<void> {
  const archive = classArchive(path)!
  const unfinished = `${archive}.unfinished`
  const dataDir = scratch('classes')
  writeFileSync(join(dataDir, 'myid'), '1')
  const server = await Server.plan({
    kind,
    dataDir,
    config: {
      standaloneEnabled: 'false',
      initLimit: 10,
      syncLimit: 5,
      'server.1': `127.0.0.1:${await freePort()}:${await freePort()}`,
    },
    javaFlags: [`-XX:ArchiveClassesAtExit=${unfinished}`],
  })
  servers.push(server)
  await server.start()
  const client = await Client.connect(server.port)
  await client.create('/archived', 'x', 1)
  await client.get('/archived')
  await client.close()
  await server.stop()
  if (existsSync(unfinished)) renameSync(unfinished, archive)
}
