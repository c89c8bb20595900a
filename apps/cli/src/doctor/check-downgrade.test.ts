import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MemoryDisk } from '@zabra/runtime'
import { nodeCompression, NodeDisk } from '@zabra/runtime/node'
import { beforeAll, describe, expect, it } from 'vitest'
import { setupStage, stage } from '../testing/cli-fixture.ts'
import { checkDowngrade } from './check-downgrade.ts'

setupStage()
let folder: string

beforeAll(async () => {
  await stage.zk.create('/plain', { data: new Uint8Array(10) })
  await stage.server.snapshot()
  folder = join(stage.folder, 'data')
})

async function check(text?: string): Promise<string[]> {
  const config = text === undefined ? undefined : { file: 'zoo.cfg', text }
  const ids: string[] = []
  const tools = { disk: new NodeDisk(), compression: nodeCompression, config }
  for await (const { id } of checkDowngrade(folder, folder, tools)) ids.push(id)
  return ids
}

describe('checkDowngrade', () => {
  it('finds nothing in the folder of a server whose level is not finalized', async () => {
    expect(await check()).toEqual([])
    expect(await check('dataDir=/data\nclientPort=2181\n')).toEqual([])
    const { code } = await stage.run(['doctor', '--downgrade', folder, '--json'])
    expect(code).toBeLessThan(2)
  })

  it('finds keys that Apache ZooKeeper ignores, and a secret of the members', async () => {
    expect(await check('quorumSecretFile=/s\nbackup.target=/b\naudit.format=json\n')).toEqual([
      'downgrade-secret',
      'downgrade-settings',
    ])
    expect(await check('audit.enable=true\nadmin.serverPort=1\n')).toEqual([])
  })

  it('finds times to live without extended types', async () => {
    await stage.zk.create('/ttl', { mode: 'persistentWithTtl', ttlMs: 3_600_000 })
    expect(await check('')).toEqual(['downgrade-types'])
    expect(await check('extendedTypesEnabled=true\n')).toEqual([])
    await stage.zk.delete('/ttl')
  })

  it('finds members that only a newer dynamic file names', async () => {
    for (const version of ['5', '10000000a', '9'])
      writeFileSync(join(folder, `zoo.cfg.dynamic.${version}`), '')
    expect(await check()).toEqual(['downgrade-members'])
    expect(await check('dynamicConfigFile=/x/zoo.cfg.dynamic.9\n')).toEqual(['downgrade-members'])
    expect(await check(`dynamicConfigFile=${folder}/zoo.cfg.dynamic.10000000a\n`)).toEqual([])
  })

  it('finds a member that is held back, a finalized level, and what cannot be read at all', async () => {
    const disk = new MemoryDisk()
    const files = join(folder, 'version-2')
    mkdirSync(files, { recursive: true })
    for (const name of readdirSync(files).filter((one) => one.startsWith('snapshot.')))
      disk.putFile(`/data/version-2/${name}`, await new NodeDisk().readFile(join(files, name)))
    const ids = async () => {
      const found: string[] = []
      for await (const { id } of checkDowngrade('/data', '/data', { disk, compression: nodeCompression }))
        found.push(id)
      return found
    }
    disk.putFile('/data/version-2/distrusted', new Uint8Array(0))
    expect(await ids()).toEqual(['downgrade-held'])
    await disk.remove('/data/version-2/distrusted')
    disk.putFile('/data/version-2/zabra.level', new TextEncoder().encode('{"finalized":1}'))
    expect(await ids()).toContain('level-file')
    for (const level of ['1', '0 proposed 1']) {
      disk.putFile('/data/version-2/zabra.level', new TextEncoder().encode(`${level}\n`))
      expect(await ids()).toEqual(['downgrade-level'])
    }
    await disk.remove('/data/version-2/zabra.level')
    expect(await ids()).toEqual([])
  })

  it('finds a node that is longer than Apache ZooKeeper reads', async () => {
    expect(await check('jute.maxbuffer=4\n')).toContain('downgrade-large')
  })
})
