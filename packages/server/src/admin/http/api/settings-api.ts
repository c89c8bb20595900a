import type { HttpResponse } from '@zabra/runtime'
import { closestMatch } from '../../../settings/closest-match.ts'
import { rowOf, settingNames, type ServerSettings, type SettingName } from '../../../settings/index.ts'
import { changeableNames, type SettingChange } from '../../../settings/live-settings.ts'
import { json, problem, type ApiCall, type ApiRoute } from './api-route.ts'
import { readObject } from './json-body.ts'

/** Keys of a request that its refusal names, and characters of a value. */
const MAX_NAMED = 10
const MAX_SHOWN = 100

const nameOfKey = new Map(settingNames.map((name) => [rowOf(name).key, name]))
const changeableKeys = changeableNames.map((name) => rowOf(name).key)

/** The settings of a running server. */
export const settingsRoutes: readonly ApiRoute[] = [
  {
    path: '/api/v1/settings',
    method: 'GET',
    role: 'view',
    summary:
      'Lists the settings in force, each with its value and default as a file would have them, where it comes from, and whether it may change while the server runs. Secrets are withheld.',
    statuses: [200],
    run: ({ liveSettings }) => json(200, { settings: liveSettings.report().map(described) }),
  },
  {
    path: '/api/v1/settings',
    method: 'PATCH',
    role: 'admin',
    summary:
      'Changes settings of this server until its next start, all of the body or none: values as in a file, null for that of the start. No file is written.',
    body: Object.fromEntries(
      changeableNames.map((name) => [
        rowOf(name).key,
        { type: ['string', 'number', 'null'], description: rowOf(name).type.expected },
      ]),
    ),
    statuses: [200, 400, 409],
    run: changeSettings,
  },
]

function described({
  isChangeable,
  isWithheld,
  ...report
}: ReturnType<ApiCall['liveSettings']['report']>[number]): object {
  return { ...report, changeable: isChangeable, withheld: isWithheld }
}

async function changeSettings({ request, liveSettings, logger, target }: ApiCall): Promise<HttpResponse> {
  const body = await readObject(request.body)
  if (body === undefined || Object.keys(body).length === 0)
    return problem(
      400,
      'The body is not understood',
      `Expected {"KEY": value, …} with keys of settings, such as {"slow.request.ms": 50}. ${WHICH}`,
    )
  const unknown = Object.keys(body).filter((key) => !nameOfKey.has(key))
  if (unknown.length > 0)
    return problem(400, 'There is no such setting', `${named(unknown, withGuess)}: unknown. ${WHICH}`)
  const fixed = Object.keys(body).filter((key) => !changeableKeys.includes(key))
  if (fixed.length > 0)
    return problem(
      409,
      'The setting needs a restart',
      `${named(fixed)} cannot change while the server runs: change the file, and restart the server. ${WHICH}`,
    )
  const wanted = new Map<SettingName, unknown>()
  for (const [key, given] of Object.entries(body)) {
    const name = nameOfKey.get(key)!
    const { type } = rowOf(name)
    const value = given === null ? undefined : type.read(textOf(given))
    if (given !== null && value === undefined)
      return problem(
        400,
        'The value is not understood',
        `${key}: expected ${type.expected}, or null for the value of the start, got ${JSON.stringify(given).slice(0, MAX_SHOWN)}. Nothing was changed.`,
      )
    wanted.set(name, value)
  }
  for (const [prefix, needed, isThere] of NEEDED) {
    const idle = Object.keys(body).filter((key) => key.startsWith(prefix))
    if (idle.length > 0 && !isThere(target.settings))
      return problem(
        409,
        'The setting would do nothing',
        `${named(idle)}: set ${needed} in the file, and restart the server.`,
      )
  }
  const changes = liveSettings.plan(wanted)
  const unseen = unseenAfter(changes, target.settings.auditEvents)
  if (unseen.length > 0)
    return problem(
      409,
      'The audit must go on',
      `${unseen.join(' and ')} cannot leave audit.events while the server runs: they record changes such as this one. Keep them, or change the file, and restart the server.`,
    )
  if (changes.length > 0) {
    const changed = changes.map(({ key, from, to }) => `${key}: ${from ?? 'unset'} → ${to ?? 'unset'}`)
    logger.info({ changed: changed.join(', ') }, 'Settings were changed, until the next start')
  }
  liveSettings.change(wanted)
  target.applySettings()
  return json(200, {
    changed: changes.map(({ key, from, to }) => ({ key, from, to })),
    lasts: 'Until the next start of this server, which takes its configuration again. No file was written.',
  })
}

/** Settings that do nothing without another one. */
const NEEDED: readonly (readonly [
  prefix: string,
  needed: string,
  isThere: (settings: ServerSettings) => boolean,
])[] = [
  ['audit.', 'audit.enable=true', ({ auditEnabled }) => auditEnabled],
  ['backup.', 'backup.target', ({ backupTargets }) => backupTargets.length > 0],
]

/** Returns the categories that record changes over HTTP, and would not be recorded any more. */
function unseenAfter(changes: readonly SettingChange[], recorded: readonly string[]): readonly string[] {
  const change = changes.find(({ name }) => name === 'auditEvents')
  if (change === undefined) return []
  const next = rowOf('auditEvents').type.read(change.to ?? '') as readonly string[]
  return ['admin', 'config'].filter((category) => recorded.includes(category) && !next.includes(category))
}

/** Returns a value as the text of a file; nothing that any setting reads for lists and objects. */
const textOf = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''

const WHICH = `These may change while the server runs: ${changeableKeys.join(', ')}.`

function named(keys: readonly string[], shown: (key: string) => string = String): string {
  const first = keys.slice(0, MAX_NAMED).map((key) => shown(key.slice(0, MAX_SHOWN)))
  return `${first.join(', ')}${keys.length > MAX_NAMED ? ` and ${keys.length - MAX_NAMED} more` : ''}`
}

function withGuess(key: string): string {
  const guess = closestMatch(key, nameOfKey.keys())
  return guess === undefined ? JSON.stringify(key) : `${JSON.stringify(key)} (did you mean ${guess}?)`
}
