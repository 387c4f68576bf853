// A map of the world on which every country is one square, about where it lies, so that
// Singapore is seen as well as Russia. Territories without a square stand in the list.
const rows = [
  '.. .. .. .. .. .. GL .. .. IS .. .. NO SE FI .. .. .. .. RU .. .. .. .. .. ..',
  '.. CA .. .. .. PM .. .. .. FO .. .. DK LT LV EE .. .. .. .. .. .. .. .. .. ..',
  '.. US .. .. .. .. .. .. IE GB BE NL DE PL BY UA .. .. KZ .. .. .. MN .. .. ..',
  '.. .. .. .. .. BM .. .. .. FR LU CH AT CZ SK MD .. GE AZ UZ KG .. CN .. KP JP',
  '.. MX .. .. BS .. .. PT ES AD MC LI SI HU RO .. TR AM TM TJ .. .. .. .. KR ..',
  '.. GT BZ .. CU HT DO PR GI .. VA IT HR BA RS BG CY SY IQ IR AF .. .. .. TW ..',
  '.. SV HN .. JM KY VI AG .. .. SM MT ME XK MK .. LB JO KW BH PK NP BT HK .. ..',
  '.. .. NI .. .. AW KN DM .. .. .. .. AL .. GR .. IL PS SA QA AE IN BD MO .. ..',
  '.. .. CR .. .. CW VC LC MA DZ TN LY EG .. .. .. .. .. YE OM .. .. MM LA VN PH',
  '.. .. PA CO VE TT GD BB EH MR ML NE TD SD ER .. .. .. .. .. MV LK TH KH .. GU',
  '.. .. .. EC GY SR GF CV SN GM BF NG CF SS ET DJ .. .. .. .. .. .. MY BN .. PW',
  '.. .. .. PE BR .. .. GW GN CI GH BJ CM UG KE SO .. .. .. .. .. .. SG ID .. FM',
  '.. .. .. BO PY .. .. .. SL LR TG GQ CG RW TZ .. .. SC .. .. .. .. .. TL PG SB',
  '.. .. .. CL AR UY .. .. .. .. ST GA CD BI MW KM .. .. .. .. .. .. .. .. AU VU',
  '.. .. .. .. FK .. .. .. .. .. .. AO ZM ZW MZ .. MG MU .. .. .. .. .. .. NC FJ',
  '.. .. .. .. .. .. .. .. .. .. .. NA BW SZ .. .. .. RE .. .. .. .. .. .. TO NZ',
  '.. .. .. .. .. .. .. .. .. .. .. .. ZA LS .. .. .. .. .. .. .. .. .. .. .. ..'
]

export const columns = 26
export const lines = rows.length

export interface Tile { code: string, x: number, y: number }

export const tiles: Tile[] = rows.flatMap((row, y) => row.split(' ').map((code, x) => ({ code, x, y })).filter(t => t.code !== '..'))
