import { MemoryDisk, silentLogger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { abandonData, RecoveryError } from './index.ts'

const LOCATION = { dataDir: '/data', dataLogDir: '/logs' }
const DATA = [
  'currentEpoch',
  'acceptedEpoch',
  'zabra.cluster',
  'zabra.level',
  'snapshot.100000001',
  'snapshot.200000001',
]
const DYNAMIC = ['zoo.cfg.dynamic.200000001', 'zoo.cfg.dynamic.next']
const OTHERS = [
  '/data/myid',
  '/data/xzoo.cfg.dynamic.1',
  '/data/zoo.cfg.dynamic',
  '/data/zoo.cfg.dynamic.1.old',
  '/data/version-2/notes',
]

function memberDisk(): MemoryDisk {
  const disk = new MemoryDisk()
  const paths = [
    ...OTHERS,
    ...DATA.map((name) => `/data/version-2/${name}`),
    ...DYNAMIC.map((name) => `/data/${name}`),
    '/logs/version-2/log.100000001',
    '/logs/version-2/log.200000001',
  ]
  for (const path of paths) disk.putFile(path, new TextEncoder().encode(path))
  return disk
}

describe('abandonData', () => {
  it('sets aside all that belongs to the former ensemble, durably, and leaves the rest', async () => {
    const disk = memberDisk()
    const { folder } = await abandonData(LOCATION, { disk, logger: silentLogger })
    disk.powerCut()
    expect(folder).toBe('/data/version-2/set-aside')
    const aside = [
      ...DATA.slice(0, 4).map((name) => `former.${name}`),
      ...DATA.slice(4).map((name) => `1.${name}`),
      ...DYNAMIC.map((name) => `former.${name}`),
    ]
    expect(disk.paths().toSorted()).toEqual(
      [
        ...OTHERS,
        ...aside.map((name) => `${folder}/${name}`),
        '/data/version-2/distrusted',
        '/logs/version-2/set-aside/1.log.100000001',
        '/logs/version-2/set-aside/1.log.200000001',
      ].toSorted(),
    )
    expect(new TextDecoder().decode(await disk.readFile('/data/version-2/distrusted'))).toBe(
      'the member joins an ensemble that was recovered without it\n',
    )
  })

  it('makes a member without any file one that has no vote', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder('/data/version-2')
    await disk.makeFolder('/logs/version-2')
    await abandonData(LOCATION, { disk, logger: silentLogger })
    expect(disk.paths()).toEqual(['/data/version-2/distrusted'])
    expect(await disk.exists('/data/version-2/set-aside')).toBe(true)
  })

  it('gives the member no vote before it moves the first file', async () => {
    const disk = memberDisk()
    disk.injectFault = (call) => (call === 'rename' ? { code: 'EIO' } : undefined)
    await expect(abandonData(LOCATION, { disk, logger: silentLogger })).rejects.toThrow('EIO')
    expect(disk.paths()).toContain('/data/version-2/distrusted')
  })

  it('completes a replacement of all data that was decided', async () => {
    const disk = memberDisk()
    disk.putFile('/data/version-2/replacement', new TextEncoder().encode('snapshot.300000001\n'))
    disk.putFile('/data/version-2/incoming.snapshot.300000001', new Uint8Array(1))
    await abandonData(LOCATION, { disk, logger: silentLogger })
    const left = (await disk.list('/data/version-2')).toSorted()
    expect(left).toEqual(['distrusted', 'notes', 'set-aside'])
  })

  it.each(['/data', '/logs'])(
    'refuses a member whose folder is missing, and changes nothing: %s',
    async (missing) => {
      const disk = new MemoryDisk()
      await disk.makeFolder(missing === '/data' ? '/logs/version-2' : '/data/version-2')
      const abandoned = abandonData(LOCATION, { disk, logger: silentLogger })
      await expect(abandoned).rejects.toThrow(RecoveryError)
      await expect(abandoned).rejects.toThrow(`${missing}/version-2`)
      expect(disk.paths()).toEqual([])
    },
  )

  it('refuses logs beside the snapshots where they have a folder of their own', async () => {
    const disk = memberDisk()
    disk.putFile('/data/version-2/log.1', new Uint8Array(1))
    const before = disk.paths()
    await expect(abandonData(LOCATION, { disk, logger: silentLogger })).rejects.toThrow('Expected logs in')
    expect(disk.paths()).toEqual(before)
  })
})
