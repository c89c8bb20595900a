import { UsageError } from '@zabra/client/core'
import { checkArgument, object, text } from '../support/checks.ts'
import { checkFields, type Instance, type UriSpec } from './instance.ts'

/** Parses a template such as `{scheme}://{address}:{port}/v2`. Throws a `UsageError` for an unmatched brace. */
export function uriSpec(template: string): UriSpec {
  checkArgument('uriSpec', 'a template', template, text)
  const parts: { value: string; variable: boolean }[] = []
  for (const part of template.split(/(\{[^{}]*\})/)) {
    const variable = part.startsWith('{') && part.endsWith('}')
    if (!variable && /[{}]/.test(part)) {
      throw new UsageError(`Expected each brace of ${JSON.stringify(template)} to have its pair`)
    }
    if (part !== '') parts.push({ value: variable ? part.slice(1, -1).trim() : part, variable })
  }
  return { parts }
}

/**
 * Returns the address of an instance from its own template. Variables are its fields and `scheme`: `https` if
 * there is an `sslPort`, else `http`. Throws a `UsageError` without a template, or for an unknown variable.
 */
export function uriOf(instance: Instance, variables: Readonly<Record<string, string>> = {}): string {
  checkArgument('uriOf', 'an instance', instance, object)
  checkArgument('uriOf', 'variables', variables, object)
  const {
    name,
    id,
    address,
    port,
    sslPort,
    uriSpec: spec,
    serviceType,
    registrationTimeUTC,
  } = checkFields(new Map(Object.entries(instance)))
  if (spec === undefined) throw new UsageError(`Expected the instance ${id} of ${name} to have a uriSpec`)
  const known: Readonly<Record<string, string | number | undefined>> = {
    scheme: sslPort === undefined ? 'http' : 'https',
    name,
    id,
    address,
    port,
    'ssl-port': sslPort,
    'registration-time-utc': registrationTimeUTC,
    'service-type': serviceType.toLowerCase(),
    ...variables,
  }
  return spec.parts.map(({ value, variable }) => (variable ? filled(value, known) : value)).join('')
}

function filled(variable: string, known: Readonly<Record<string, string | number | undefined>>): string {
  const value = Object.hasOwn(known, variable) ? known[variable] : undefined
  if (value === undefined) throw new UsageError(`Expected a value for {${variable}} of a uriSpec`)
  return String(value)
}
