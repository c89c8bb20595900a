export { Configuration } from './configuration.ts'
export type { ConfigurationOptions, ConfigurationSetOptions, ConfigurationValue } from './configuration.ts'
