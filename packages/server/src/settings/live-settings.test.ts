import { expect, it } from 'vitest'
import { loadSettings } from './index.ts'
import { LiveSettings, type SettingReport } from './live-settings.ts'

const FILE = 'dataDir=/data\nclientPort=0\nslow.request.ms=50\nadmin.tokensFile=/t\n'

function load(text = FILE): LiveSettings {
  const files = { read: () => undefined, resolve: (path: string) => path }
  const environment = { ZOO_MAX_CLIENT_CNXNS: '7', JVMFLAGS: '-Dzookeeper.snapCount=500' }
  const { settings, findings } = loadSettings({ file: { name: 'zoo.cfg', text }, environment, files })
  expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  return new LiveSettings(settings!)
}

const reportOf = (live: LiveSettings, key: string): SettingReport =>
  live.report().find((setting) => setting.key === key)!

it('settings have the place where they were set', () => {
  const live = load()
  const origins = ['slow.request.ms', 'slow.request.readMs', 'maxClientCnxns', 'snapCount', 'tickTime'].map(
    (key) => [reportOf(live, key).value, reportOf(live, key).origin],
  )
  expect(origins).toEqual([
    ['50', 'zoo.cfg:3'],
    ['50', 'default'],
    ['7', 'ZOO_MAX_CLIENT_CNXNS'],
    ['500', 'JVMFLAGS'],
    ['3000', 'default'],
  ])
})

it('a default that is set in the file stays when the setting from which it would follow changes', () => {
  const live = load(`${FILE}slow.request.readMs=50\n`)
  live.change(new Map([['slowRequestMs', 9]]))
  expect([live.values.slowRequestMs, live.values.slowRequestReadMs]).toEqual([9, 50])
})

it('a plan changes nothing, and says what a change would', () => {
  const live = load()
  const wanted = new Map([['slowRequestMs', 9]] as const)
  expect(live.plan(wanted).map(({ key, from, to }) => [key, from, to])).toEqual([
    ['slow.request.ms', '50', '9'],
    ['slow.request.readMs', '50', '9'],
  ])
  expect(live.values.slowRequestMs).toBe(50)
  live.change(wanted)
  expect(live.plan(wanted)).toEqual([])
  expect(live.plan(new Map([['slowRequestMs', undefined]])).map(({ to }) => to)).toEqual(['50', '50'])
})
