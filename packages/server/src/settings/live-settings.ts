import { originsOf, rowOf, settingNames, withDefaults, type Origins } from './defaults.ts'
import { bareValue } from './value-types.ts'
import type { ServerSettings, SettingName } from './table.ts'

/** The names of the settings that may change while a server runs. */
export const changeableNames: readonly SettingName[] = settingNames.filter(
  (name) => rowOf(name).isChangeable === true,
)

/** A setting of a running server. */
export interface SettingReport {
  readonly key: string
  /** As a file would have it; null where it is not set, and for secrets. */
  readonly value: string | null
  /** Unit of a bare number; empty without one. */
  readonly unit: string
  /** The default as a file would have it; null where it is not set or follows from other settings. */
  readonly default: string | null
  /** Where the value comes from: `zoo.cfg:12`, `JVMFLAGS`, `default`, …; `program` without a file; `api` once it was changed. */
  readonly origin: string
  readonly isChangeable: boolean
  /** Whether there is a value that is not shown. */
  readonly isWithheld: boolean
  /** The value of the start, where it was changed since. */
  readonly atStart: string | null
}

/** A setting that has changed, with its values as a file would have them. */
export interface SettingChange {
  readonly name: SettingName
  readonly key: string
  readonly from: string | null
  readonly to: string | null
}

/**
 * The settings of a running server: those of its start, and what was changed since, in memory alone. `values` is one object for the life
 * of the server: code that reads a changeable setting when it needs it needs nothing else.
 */
export class LiveSettings {
  readonly values: ServerSettings
  readonly #atStart: ServerSettings
  readonly #origins: Origins | undefined
  readonly #changed = new Map<SettingName, unknown>()

  constructor(settings: ServerSettings) {
    this.#atStart = settings
    this.#origins = originsOf(settings)
    this.values = { ...settings }
  }

  /**
   * Returns what would change, without changing it: a value undefined brings that of the start back. A default that follows from a changed
   * setting changes, too. All names must be changeable, and the values checked.
   */
  plan(wanted: ReadonlyMap<SettingName, unknown>): readonly SettingChange[] {
    const next = this.#resolved(this.#merged(wanted))
    return changeableNames
      .filter((name) => next[name] !== this.values[name])
      .map((name) => {
        const { key } = rowOf(name)
        return { name, key, from: textOf(name, this.values[name]), to: textOf(name, next[name]) }
      })
      .filter(({ from, to }) => from !== to)
  }

  /** Changes settings of which `plan` says what changes. */
  change(wanted: ReadonlyMap<SettingName, unknown>): void {
    const merged = this.#merged(wanted)
    this.#changed.clear()
    for (const [name, value] of merged) this.#changed.set(name, value)
    const next = this.#resolved(merged)
    const values = this.values as Record<SettingName, unknown>
    for (const name of changeableNames) values[name] = next[name]
  }

  report(): readonly SettingReport[] {
    return settingNames.map((name) => {
      const { key, type, defaultValue, isSecret = false, isChangeable = false } = rowOf(name)
      const [value, atStart] = [this.values[name], this.#atStart[name]]
      const isWithheld = isSecret && value !== undefined && textOf(name, value) !== ''
      return {
        key,
        value: isSecret ? null : textOf(name, value),
        unit: type.unit,
        default: typeof defaultValue === 'function' || isSecret ? null : textOf(name, defaultValue),
        origin: this.#changed.has(name) ? 'api' : this.#originOf(name),
        isChangeable,
        isWithheld,
        atStart: value === atStart ? null : textOf(name, atStart),
      }
    })
  }

  #originOf(name: SettingName): string {
    return this.#origins?.[name] ?? (this.#isDefault(name) ? 'default' : 'program')
  }

  /** Whether the value of the start is the default, as far as a program that gave no origins says. */
  #isDefault(name: SettingName): boolean {
    if (this.#origins !== undefined) return this.#origins[name] === 'default'
    const { defaultValue } = rowOf(name)
    const value = typeof defaultValue === 'function' ? defaultValue(this.#atStart) : (defaultValue as unknown)
    return JSON.stringify(value) === JSON.stringify(this.#atStart[name])
  }

  #merged(wanted: ReadonlyMap<SettingName, unknown>): Map<SettingName, unknown> {
    const merged = new Map(this.#changed)
    for (const [name, value] of wanted)
      if (value === undefined) merged.delete(name)
      else merged.set(name, value)
    return merged
  }

  /** Returns the settings of the start with changes, and the defaults that follow from these. */
  #resolved(changed: ReadonlyMap<SettingName, unknown>): ServerSettings {
    const given = settingNames.filter(
      (name) => typeof rowOf(name).defaultValue !== 'function' || !this.#isDefault(name),
    )
    return withDefaults({
      ...Object.fromEntries(given.map((name) => [name, this.#atStart[name]])),
      ...Object.fromEntries(changed),
    })
  }
}

const textOf = (name: SettingName, value: unknown): string | null =>
  value === undefined ? null : bareValue(value, rowOf(name).type)
